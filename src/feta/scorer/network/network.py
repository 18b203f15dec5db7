"""Networks: a first layer of slopes and tables, then affine layers with activations between them.

The stored numbers define the model: its scores are the exact real function of them. Calling a
network computes float64 scores, for display only. Decisions use `Model.resolve`, which is exact.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from feta.arrays import Array, Counts, Matrix, Vector
from feta.deprecation import renamed
from feta.errors import NetworkError, SchemaError, unknown_choice
from feta.relation.protocol import Relation
from feta.rounding import LARGEST_ACTIVATION, SOURCES, Arithmetic
from feta.scorer.exact_scores import ExactScores
from feta.scorer.network.activation import (
    NAMED,
    SMOOTH,
    Activation,
    Maxout,
    Scaled,
    Step,
    identity,
    refuse_smooth,
)
from feta.scorer.network.embedding import expanded
from feta.scorer.network.error_bounds import largest_activations
from feta.scorer.network.evaluation import Rows, Tabulated
from feta.scorer.network.exact import ExactNetwork
from feta.scorer.network.layers import Affine, Columns, Measured, check_affine
from feta.scorer.network.separated import SeparatedNetwork
from feta.scorer.network.smooth.activation import NAMED_SMOOTH, Smooth
from feta.scorer.network.smooth.exact import has_balls, smooth_scores
from feta.scorer.protocol import Link, Provenance, Restricted, Scorer, Side, StoredScorer
from feta.scorer.restricted_rows import RestrictedRows
from feta.space.attribute import Attribute, Categorical, Derived
from feta.space.feature_space import FeatureSpace

# The links of generalized linear models whose inverse the source computes after the score.
InverseLink = Literal["log", "probit"]


@dataclass(frozen=True, eq=False)
class Network:
    """A network: first(x), then for each layer: its activation, then W·a + b."""

    first: Columns
    activations: tuple[Activation | Smooth, ...]  # activations[i] comes before layers[i]
    layers: tuple[Affine, ...]
    equality: Side | None = None  # the side of ties in the source, if known
    source: Literal["float32", "float64"] = "float32"  # the format of the user's runtime
    sigmoid: bool = False  # whether the runtime compares σ(score) instead of the score
    provenance: Provenance = "proved"  # "sampled": preprocessing was sampled, not proved
    # None: the slopes are the source's formula and hold for all numbers. Not in the fingerprint.
    measured: Measured | None = None
    # The source predicts the inverse link of a score: exp for "log", Φ for "probit".
    inverse_link: InverseLink | None = None

    reading = renamed("reading", "provenance")

    def __post_init__(self) -> None:
        if len(self.activations) != len(self.layers):
            raise NetworkError(
                f"wrong number of activations: got {len(self.activations)}; expected "
                f"{len(self.layers)}, one before each layer but the first"
            )
        for name, choices in (
            ("equality", ("above", "below", None)),
            ("provenance", ("proved", "sampled")),
            ("source", tuple(SOURCES)),
            ("inverse_link", ("log", "probit", None)),
        ):
            if getattr(self, name) not in choices:
                raise NetworkError(
                    f"invalid {name}: {unknown_choice(getattr(self, name), choices)}"
                )
        width = self.first.outputs
        for index, (activation, layer) in enumerate(self.steps, start=2):
            if layer.weight.shape[1] != width:
                raise NetworkError(
                    f"wrong number of inputs of layer {index}: got {layer.weight.shape[1]}; "
                    f"expected {width}"
                )
            if activation.width not in (1, width):
                raise NetworkError(
                    f"wrong width of the activation {activation.name!r} before layer {index}: got "
                    f"{activation.width} neurons; expected 1 or {width}"
                )
            width = len(layer.bias)

    @classmethod
    def from_layers(
        cls,
        layers: Sequence[tuple[ArrayLike, ArrayLike]],
        *,
        activation: str | Step | Sequence[str | Step] = "relu",
        source: Literal["float32", "float64"] = "float32",
        equality: Side | None = None,
        sigmoid: bool = False,
    ) -> "Network":
        """Return a network of (W, b) pairs, where W is (out, in) as torch stores it.

        One activation is used between all layers; or pass a list, one shorter than the layers.
        "maxout" takes the larger of each two neighbors, so half of the values remain.
        """
        from feta.scorer.network.builder import NetworkBuilder  # noqa: PLC0415 - it imports this module

        if not layers:
            raise NetworkError("a network needs at least one layer: got none")
        if isinstance(activation, str | Activation | Scaled | Maxout | Smooth):
            between: list[str | Step] = [activation] * (len(layers) - 1)
        else:
            between = list(activation)
        if len(between) != len(layers) - 1:
            raise NetworkError(
                f"wrong number of activations: got {len(between)}; expected {len(layers) - 1} for "
                f"{len(layers)} layers"
            )
        builder = NetworkBuilder()
        for index, (weight, bias) in enumerate(layers, start=1):
            if index > 1:
                step = _step(between[index - 2])
                builder.activate(step, f"the activation before layer {index}")
            builder.linear(*_layer_arrays(index, weight, bias))
        return builder.network(source=source, equality=equality, sigmoid=sigmoid)

    @property
    def steps(self) -> Iterator[tuple[Activation | Smooth, Affine]]:
        """Each layer after the first, with the activation before it."""
        return zip(self.activations, self.layers, strict=True)

    @property
    def piecewise_linear(self) -> bool:
        """Whether no activation is smooth: then scores are exact, and a search needs no grid."""
        return not any(isinstance(activation, Smooth) for activation in self.activations)

    @property
    def piecewise_layers(self) -> "Network | None":
        """The layers, for bounds over boxes of people; None if an activation is smooth."""
        return self if self.piecewise_linear else None

    @property
    def piecewise_steps(self) -> Iterator[tuple[Activation, Affine]]:
        """Each layer after the first, with the activation before it; raise if one is smooth."""
        for activation, layer in self.steps:
            if isinstance(activation, Smooth):
                raise activation.no_pieces()
            yield activation, layer

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.first.width

    @property
    def outputs(self) -> int:
        """The number of scores."""
        return len(self.layers[-1].bias) if self.layers else self.first.outputs

    @property
    def link(self) -> Link:
        """What the source's own prediction is, in terms of the score."""
        return "logit" if self.sigmoid else self.inverse_link or "identity"

    @property
    def may_be_log_odds(self) -> bool:
        """Whether nothing is known about the scores: no sigmoid, no link, and no classifier."""
        return self.link == "identity" and self.equality is None

    @property
    def description(self) -> str:
        """The widths of the layers."""
        widths = [self.width, self.first.outputs, *(len(layer.bias) for layer in self.layers)]
        smooth = sorted({step.name for step in self.activations if isinstance(step, Smooth)})
        kinds = f", with {' and '.join(smooth)}" if smooth else ""
        return f"Network: {' - '.join(map(str, widths))} neurons{kinds}"

    @property
    def output_limits(self) -> tuple[Vector, Vector]:
        """Bounds on each score that follow from the last activation."""
        if not self.layers:
            return np.full(self.outputs, -np.inf), np.full(self.outputs, np.inf)
        last, limits = self.layers[-1], self.activations[-1].limits
        first, second = (last.weight * np.where(last.weight == 0, 0.0, limit) for limit in limits)
        low = np.minimum(first, second).sum(axis=1) + last.bias
        high = np.maximum(first, second).sum(axis=1) + last.bias
        return np.asarray(low), np.asarray(high)

    @property
    def arithmetic(self) -> Arithmetic:
        """The arithmetic of the user's runtime, whose rounding may change decisions."""
        return SOURCES[self.source]

    @property
    def cost(self) -> int:
        """The width of the widest layer."""
        return max([self.first.outputs, *(len(layer.bias) for layer in self.layers)])

    @cached_property
    def exact(self) -> ExactNetwork:
        """The network in exact arithmetic."""
        return ExactNetwork(self)

    @property
    def balls(self) -> Callable[[Matrix, int], ExactScores] | None:
        """What encloses scores in balls of so many bits; None if they are exact, or not known."""
        return partial(smooth_scores, self) if has_balls(self) else None

    def exact_scores(self, people: Matrix) -> ExactScores:
        """Compute the exact scores of people; intervals if an activation is smooth."""
        if self.piecewise_linear:
            return ExactScores(self.exact.scores(people))
        return smooth_scores(self, people)

    def unscaled(
        self, space: FeatureSpace, centers: Sequence[float], scales: Sequence[float]
    ) -> "Network":
        """Return the network for the columns x of a space, from one of (x − center) / scale."""
        from feta.scorer.network.fold import unscaled  # noqa: PLC0415 - it imports this module

        return unscaled(self, space, centers, scales)

    def over(self, space: FeatureSpace) -> "Network":
        """Return the network for the columns of a space: one-hot columns where it embeds them.

        Raise if its values could overflow there.
        """
        network = expanded(self, space)
        if network.width != space.width:
            raise SchemaError(
                f"wrong number of network inputs: got {network.width}; expected {space.width}, "
                "the columns of the space; a categorical attribute has one column per value"
            )
        with np.errstate(over="ignore"):
            largest = list(largest_activations(network, space.magnitudes))
        for index, sizes in enumerate(largest, start=1):
            neuron = int(np.argmax(sizes))
            if not sizes[neuron] < LARGEST_ACTIVATION:
                raise NetworkError(
                    f"layer {index}, neuron {neuron} could overflow: got values up to "
                    f"{sizes[neuron]:.3g} in this space; expected less than "
                    f"{LARGEST_ACTIVATION:g}; narrow the columns' limits or rescale the weights"
                )
        return network

    def obstacle(self, column: int, low: float, high: float) -> str:
        """Return why a column must not leave the limits of the space; empty if it may."""
        if column in self.first.tabled:
            return "the model reads this column by a table of values"
        if self.measured is not None and self.measured.span(column) is None:
            return "the preprocessing of this column is known only within the limits"
        if max(abs(low), abs(high)) >= LARGEST_ACTIVATION:
            return "the number is too large for float64 arithmetic"
        return ""

    def widened(self, limits: Mapping[int, tuple[float, float]], magnitudes: Vector) -> "Network":
        """Return the network for wider limits; raise if the source's arithmetic may overflow.

        Its results would be undefined then.
        """
        network = self._with_wider_preprocessing(limits)
        largest = largest_activations(network, magnitudes)
        sizes = [float(layer.max()) for layer in largest]
        sizes += [float(network.first.cancelled_magnitude.max()), float(magnitudes.max())]
        if not max(sizes) < self.arithmetic.huge:
            raise NetworkError(
                f"{self.arithmetic.name} arithmetic of the source could overflow: got values up to "
                f"{max(sizes):.3g}; expected less than {self.arithmetic.huge:.3g}"
            )
        return network

    def _with_wider_preprocessing(self, limits: Mapping[int, tuple[float, float]]) -> "Network":
        """Scale the magnitudes that bound preprocessing so that they hold over wider limits.

        Over its span, a value of an affine step is at most its magnitude. At t spans it is at most
        magnitude · (1 + 2·t), including the terms that the source adds. A slope that was measured
        over the span, with an error of at most twice that of a feature, adds at most 2·t times
        that.
        """
        if self.measured is None:
            return self
        factor = 1.0
        for column, (low, high) in limits.items():
            span = self.measured.span(column)
            assert span is not None  # otherwise there is an obstacle
            radius = max(high, span[1]) - min(low, span[0])
            factor += 2 * radius / (span[1] - span[0])
        first = replace(self.first, cancelled_magnitude=self.first.cancelled_magnitude * factor)
        if not np.isfinite(first.cancelled_magnitude).all():
            raise NetworkError("numbers of the preprocessing could overflow")
        largest = self.measured.largest * factor
        limit = min(LARGEST_ACTIVATION, self.arithmetic.huge)
        if not largest < limit:
            raise NetworkError(
                f"too large a number in the preprocessing: got up to {largest:.3g}; expected less "
                f"than {limit:.3g}"
            )
        return replace(self, first=first)

    def points(self, people: Matrix) -> Rows:
        """Return people as points, one per row."""
        return Rows(self.exact, people)

    def restrict(self, relation: Relation) -> Restricted:
        """Return the network on people's counterparts.

        If assignments change the axes only, the first layer is tabulated over the axes.
        """
        whole = relation.enclosing
        if whole is not None:
            return Tabulated(self.exact, whole)
        return SeparatedNetwork.of(self, relation) or RestrictedRows(self, relation)

    def __call__(self, people: Matrix) -> Matrix:
        """Compute scores in float64, (people, outputs), for display only."""
        values = self.first(people)
        for activation, layer in self.steps:
            values = activation(values) @ layer.weight.T + layer.bias
        return values

    def then(self, activation: Activation | Smooth, layer: Affine) -> "Network":
        """Append a layer."""
        return replace(
            self,
            activations=(*self.activations, activation),
            layers=(*self.layers, layer),
        )

    def difference(self) -> "Network":
        """Return the network whose score is the second output minus the first.

        Products with ±1 are exact.
        """
        return self.then(identity(), Affine(np.array([[-1.0, 1.0]]), np.zeros(1)))

    def output(self, index: int) -> "Network":
        """Return the network of one output; products with 0 and 1 are exact."""
        row = np.eye(self.outputs)[index : index + 1]
        return replace(self.then(identity(), Affine(row, np.zeros(1))), equality=None)

    def with_link(self, link: Link) -> "Network":
        """Return the network with or without a sigmoid after its scores."""
        return replace(self, sigmoid=link == "logit")

    def stored(self) -> StoredScorer:
        """Return all numbers that define the score.

        `bias` and `slopes` (neurons, columns) are the first layer, with tables of columns
        `table0.column`, `.numbers` and `.rows`, and so on. Layer 1 is the next one: an activation
        of pieces `layer1.breaks`, `.slopes` and `.intercepts` (pieces, neurons or 1), or a smooth
        one with its name in `layer1.function` as bytes and its `.parameter`, then `layer1.weight`
        (out, in) and `.bias`.
        """
        first = self.first
        arrays: dict[str, Array] = {"bias": first.bias, "slopes": first.slopes}
        for index, table in enumerate(first.tables):
            arrays[f"table{index}.column"] = np.array(table.column)
            arrays[f"table{index}.numbers"] = table.numbers
            arrays[f"table{index}.rows"] = table.rows
        for index, (activation, layer) in enumerate(self.steps, start=1):
            arrays |= {f"layer{index}.{name}": array for name, array in activation.numbers.items()}
            arrays[f"layer{index}.weight"] = layer.weight
            arrays[f"layer{index}.bias"] = layer.bias
        kind = "piecewise-linear network" if self.piecewise_linear else "smooth network"
        return StoredScorer(kind, arrays)

    @cached_property
    def fingerprint(self) -> str:
        """A sha256 of all numbers that affect decisions, and of the facts about the source."""
        arrays = [self.first.bias, self.first.slopes, self.first.cancelled_magnitude]
        for table in self.first.tables:
            arrays += [np.array([table.column], dtype=np.float64), table.numbers, table.rows]
        for activation, layer in self.steps:
            arrays += activation.numbers.values()
            arrays += [layer.weight, layer.bias, layer.cancelled_magnitude]
        shapes = [array.shape for array in arrays]
        facts: list[object] = [self.equality, self.source, self.sigmoid, shapes]
        facts += ["sampled"] if self.provenance == "sampled" else []
        facts += [] if self.piecewise_linear else ["smooth"]
        facts += [f"link {self.inverse_link}"] if self.inverse_link is not None else []
        digest = hashlib.sha256(json.dumps(facts).encode())
        for array in arrays:
            digest.update(array.astype("<f8").tobytes())
        return digest.hexdigest()

    def guides(self, people: Matrix, columns: Counts) -> Matrix:
        """Return the neurons of the first layer that read one of these columns."""
        tabled = any(table.column in columns for table in self.first.tables)
        reads = (self.first.slopes[:, columns] != 0).any(axis=1) | tabled
        return np.asarray(self.first(people)[:, reads])

    def reads(self, attribute: Attribute, space: FeatureSpace) -> bool:
        """Return whether a score can depend on the columns of an attribute.

        Columns of other attributes, such as bands derived from it, are not included.
        """
        columns = space.columns_of(attribute)
        slopes = self.first.slopes[:, columns]
        # Exactly one of a category's columns is 1, so equal slopes are a constant.
        one_hot = isinstance(attribute, Categorical | Derived)
        if (np.ptp(slopes, axis=1) if one_hot else slopes).any():
            return True
        return any(
            columns.start <= table.column < columns.stop and bool(np.ptp(table.rows, axis=0).any())
            for table in self.first.tables
        )


def network_of(scorer: Scorer) -> Network:
    """Return a scorer that is a piecewise-linear network; raise if it is another one."""
    network = any_network_of(scorer)
    if not network.piecewise_linear:
        raise NetworkError(
            f"invalid scorer: got {network.description}; expected a piecewise-linear Network"
        )
    return network


def any_network_of(scorer: Scorer) -> Network:
    """Return a scorer that is a network, perhaps a smooth one; raise if it is of another kind."""
    if not isinstance(scorer, Network):
        raise NetworkError(f"invalid scorer: got {type(scorer).__name__}; expected a Network")
    return scorer


def _step(step: str | Step) -> Step:
    if not isinstance(step, str):
        return step
    if step in NAMED_SMOOTH:
        return Smooth(NAMED_SMOOTH[step])
    if step in SMOOTH:
        raise refuse_smooth(step, f"the activation {step!r}")
    if step not in NAMED:
        raise NetworkError(f"unknown activation: {unknown_choice(step, NAMED)}")
    return NAMED[step]()


def _layer_arrays(index: int, weight: ArrayLike, bias: ArrayLike) -> tuple[Matrix, Vector]:
    try:
        matrix, vector = np.asarray(weight, dtype=np.float64), np.asarray(bias, dtype=np.float64)
    except (TypeError, ValueError):
        raise NetworkError(
            f"invalid arrays of layer {index}: expected rows of numbers of equal length"
        ) from None
    check_affine(f"layer {index}", matrix, vector)
    return matrix, vector
