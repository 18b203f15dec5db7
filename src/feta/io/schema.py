"""Schema: a space, its rule and its scaling; with a network it becomes a model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from feta.errors import SchemaError, one_of
from feta.io.part_file import written_whole
from feta.io.schema_file import Decision, SchemaFile, format_schema, read_schema_file
from feta.io.table_options import TableOptions
from feta.model import Model
from feta.rule import Argmax, OneVsRest, Rule, Threshold, Tolerance
from feta.scorer.network.embedding import embedded_inputs, expanded
from feta.scorer.network.fold import fold_scaling
from feta.scorer.network.network import Network
from feta.space.attribute import Categorical, Derived
from feta.space.feature_space import FeatureSpace

# How far rounding may take an output of a clip beyond its limits.
CLOSE = 1e-6


@dataclass(frozen=True, slots=True)
class Schema:
    """What a person writes down about a model: columns, decision, and the scaling it expects."""

    file: SchemaFile

    @property
    def space(self) -> FeatureSpace:
        """Who can exist."""
        return self.file.space

    @property
    def decision(self) -> Decision:
        """What the decisions are called."""
        return self.file.decision

    @property
    def table(self) -> TableOptions:
        """How pandas reads the user's CSV files."""
        return self.file.table

    @property
    def rule(self) -> Rule:
        """How scores become decisions."""
        decision = self.file.decision
        if decision.tolerance is not None:
            return Tolerance(decision.tolerance)
        if decision.one_vs_rest is not None:
            return OneVsRest(decision.classes, decision.one_vs_rest)
        if decision.classes:
            return Argmax(decision.classes)
        return self._threshold

    @property
    def _threshold(self) -> Threshold:
        decision = self.file.decision
        if decision.favors not in ("above", "below"):
            raise SchemaError(
                f"[decision]: favors must be {one_of(decision.favors, ('above', 'below'))}"
            )
        if decision.equality not in (None, "favorable", "unfavorable"):
            known = ("favorable", "unfavorable")
            raise SchemaError(f"[decision]: equality must be {one_of(decision.equality, known)}")
        if decision.score is not None:
            rule = Threshold(decision.score, decision.favors)  # type: ignore[arg-type]  # checked above
        else:
            probability = 0.5 if decision.probability is None else decision.probability
            rule = Threshold.at_probability(probability, decision.favors)  # type: ignore[arg-type]  # checked above
        return replace(rule, equality=decision.equality)  # type: ignore[arg-type]  # checked above

    @property
    def centers(self) -> list[float]:
        """What the network expects subtracted, column by column."""
        return self._per_column(self.file.centers)

    @property
    def scales(self) -> list[float]:
        """What the network expects each column divided by."""
        return self._per_column(self.file.scales)

    def _per_column(self, numbers: dict[str, float]) -> list[float]:
        columns: list[float] = []
        for attribute in self.space.attributes:
            scaled = not isinstance(attribute, Categorical | Derived)
            plain = 0.0 if numbers is self.file.centers else 1.0
            number = numbers.get(attribute.name, plain) if scaled else plain
            flags = [plain] * (attribute.width - 1)  # of a number that may be missing
            columns += [number, *flags]
        return columns

    @property
    def scaled(self) -> bool:
        """Whether the network expects some column scaled."""
        return any(self.centers) or any(one != 1.0 for one in self.scales)

    def _check_embedded(self, network: Network) -> None:
        """Refuse to scale what the network looks up: a table has no slope to be scaled."""
        for table in network.first.tables:
            if self.centers[table.column] != 0 or self.scales[table.column] != 1:
                starts = {
                    self.space.columns_of(one).start: one.name for one in self.space.attributes
                }
                name = starts[table.column]
                message = (
                    f"the network embeds {name!r}, so it must have neither center nor scale: let "
                    "the network take the column as it is"
                )
                raise SchemaError(message)

    def score_note(self, network: Network) -> str:
        """Explain `threshold` for a network without probabilities; empty if it has some."""
        decision, rule = self.decision, self.rule
        if not isinstance(rule, Threshold) or decision.score is not None or network.sigmoid:
            return ""
        probability = 0.5 if decision.probability is None else decision.probability
        if network.outputs == 1:
            return (
                "the model ends in no sigmoid, so its outputs are taken for logits, and "
                f"threshold = {probability:g} for score = 0.0; write score = 0.0 in [decision] "
                "if that is right, or score = 0.5 if the outputs themselves are compared with "
                "0.5"
            )
        if probability == 0.5:  # noqa: PLR2004 - the larger output decides, with or without a softmax
            return ""
        return (
            f"the model gives no probabilities, so threshold = {probability:g} is compared with "
            "the softmax of its two outputs; export the model with its softmax if that is "
            "right, or write score = … in [decision] for the second output less the first"
        )

    def _check_probability(self, network: Network) -> None:
        """Reject a probability other than 0.5 for an output that is not a probability."""
        probability = self.decision.probability
        if network.sigmoid or network.outputs != 1 or probability in (None, 0.5):
            return
        logit = self._threshold.value
        message = (
            f"[decision]: threshold = {probability!r} is a probability, but the model ends in no "
            f"sigmoid and gives scores; write score = {logit!r} if your code applies the sigmoid "
            f"to its outputs, score = {probability!r} if it compares the outputs themselves, or "
            "export the model with its sigmoid"
        )
        raise SchemaError(message)

    def check_classes(self, classes: Sequence[str]) -> None:
        """Refuse outcomes that an estimator's own classes contradict."""
        rule, name = self.rule, self.decision.favorable
        listed = list(rule.classes) if isinstance(rule, Argmax) else []
        if listed != list(classes) and sorted(listed) == sorted(classes):
            message = (
                f"the classes in [decision] must be in the order of the model's, got {listed}; "
                f"write classes = {list(classes)}"
            )
            raise SchemaError(message)
        if not isinstance(rule, Threshold) or name not in classes or len(classes) != 2:  # noqa: PLR2004 - two sides
            return
        side = "above" if classes.index(name) == 1 else "below"
        if rule.favors != side:
            message = (
                f"the model's high scores are for its second class, "
                f'{classes[1]!r}, so favorable = "{name}" needs favors = '
                f'"{side}" in [decision]'
            )
            raise SchemaError(message)

    def model(self, network: Network) -> Model:
        """Fold the scaling into the network, and put space, network and rule together."""
        inputs = embedded_inputs(network)
        network = expanded(network, self.space)
        if network.width != self.space.width:
            message = (
                f"the schema's columns make {self.space.width} network inputs (a category takes "
                f"one per value), but the network has {network.width}{inputs}"
            )
            raise SchemaError(message)
        rule = self.rule
        _check_outputs(rule, network)
        self._check_embedded(network)
        try:
            folded = fold_scaling(network, self.centers, self.scales)
        except OverflowError:
            message = (
                "center and scale must leave the network's weights finite, but some grow beyond "
                "float64"
            )
            raise SchemaError(message) from None
        if not isinstance(rule, Threshold):
            return Model(self.space, folded, rule)
        if self.file.decision.score is None:
            _check_logits(network)
            self._check_probability(network)
            folded = replace(folded, sigmoid=True)
        names = (self.decision.unfavorable, self.decision.favorable)
        return Model(self.space, folded, rule, outcomes=names)


def _check_logits(network: Network) -> None:
    """Reject outputs between 0 and 1 as logits: they are probabilities already."""
    if network.sigmoid or not network.layers or not network.layers[-1].weight.any():
        return
    last, ends = network.layers[-1], network.activations[-1].limits
    first, second = (last.weight * np.where(last.weight == 0, 0.0, end) for end in ends)
    lowest = np.minimum(first, second).sum(axis=1) + last.bias
    highest = np.maximum(first, second).sum(axis=1) + last.bias
    if (lowest >= -CLOSE).all() and (highest <= 1 + CLOSE).all():
        raise SchemaError(
            "the network's outputs stay between 0 and 1, as probabilities do, but a "
            "threshold is compared with logits; write score = 0.5 in [decision] instead (or "
            "score = 0.0, if they are logits after all)"
        )


def _check_outputs(rule: Rule, network: Network) -> None:
    """Refuse a rule that does not fit the network's outputs, and say which would."""
    got = f"the network has {network.outputs} output{'s' if network.outputs > 1 else ''}"
    match rule:
        case Threshold() if network.outputs > 2:  # noqa: PLR2004 - two outputs make one score
            message = (
                f'{got}: list their classes in [decision], classes = ["…", '
                f'"…"], in the order of the outputs'
            )
        case Argmax() | OneVsRest() if network.outputs == 1:
            message = (
                f"[decision] lists {rule.outputs} classes, but {got}: give favorable, "
                "unfavorable and a threshold instead"
            )
        case Argmax() | OneVsRest() if network.outputs != rule.outputs:
            message = (
                f"[decision] lists {rule.outputs} classes, but {got}: list one class per output"
            )
        case Tolerance() if network.outputs > 1:
            message = (
                f"a tolerance compares one score, but {got}: list their classes in [decision] "
                "instead"
            )
        case Tolerance() if network.sigmoid:
            message = (
                "a tolerance compares plain scores, but the network ends in a sigmoid; export it "
                "without"
            )
        case _:
            return
    raise SchemaError(message)


def read_schema(path: str | Path) -> Schema:
    """Read a schema from a TOML file."""
    schema = Schema(read_schema_file(path))
    try:
        _ = schema.rule
    except SchemaError as error:  # name the file
        raise SchemaError(f"{path}: {error}") from None
    return schema


def write_schema(schema: Schema, path: str | Path) -> None:
    """Write a schema as TOML; an existing file is replaced at once or not at all."""
    with written_whole(Path(path)) as part:
        part.write_text(format_schema(schema.file), encoding="utf-8")
