"""Reader of skorch estimators: torch modules with a scikit-learn interface."""

from dataclasses import replace
from typing import Any

import numpy as np

from feta.arrays import Flags, Matrix
from feta.errors import NetworkError
from feta.readers.torch.check import SCALES, draw_rows, run_module
from feta.readers.torch.read import read_module
from feta.rounding import sigmoid_error
from feta.scorer.network import error_bounds
from feta.scorer.network.agreement import Squash, check_agreement
from feta.scorer.network.network import Network

# With the first two of these criteria or their subclasses, skorch applies softmax or sigmoid to the
# module's outputs before it decides; with all others, it takes the outputs unchanged.
CRITERIA = ("CrossEntropyLoss", "BCEWithLogitsLoss", "BCELoss")
OTHER = "another criterion"

# The last functions that a module may have, for each of skorch's estimators and criteria.
ENDS: dict[str, dict[str, tuple[Squash | None, ...]]] = {
    "NeuralNetBinaryClassifier": {"BCEWithLogitsLoss": (None,), "BCELoss": ("sigmoid",)},
    "NeuralNetClassifier": {
        "CrossEntropyLoss": (None, "log_softmax"),
        OTHER: ("softmax", "log_softmax"),
    },
    "NeuralNetRegressor": {OTHER: (None,)},
}


def is_skorch(estimator: object) -> bool:
    """Return whether an estimator is exactly one of skorch's types; a subclass may differ."""
    kind = type(estimator)
    return kind.__module__.startswith("skorch.") and kind.__name__ in ENDS


def read_skorch(estimator: Any) -> Network:  # noqa: ANN401 - skorch ships no types
    """Read the trained module; all of skorch's classifiers compare strictly."""
    _check_data_path(estimator)
    network, squash = read_module(estimator.module_, any_mode=True)
    _check_end(estimator, squash)
    match type(estimator).__name__:
        case "NeuralNetRegressor":
            _check_values(estimator, network)
            return network
        case "NeuralNetBinaryClassifier":
            if network.outputs != 1 or estimator.threshold != 0.5:  # noqa: PLR2004 - σ(0)
                raise NetworkError(
                    "NeuralNetBinaryClassifier has unsupported outputs or an unsupported "
                    f"threshold: got {network.outputs} and {estimator.threshold}; expected one "
                    "output and the threshold 0.5; set the threshold in the schema instead"
                )
            _check_decisions(estimator, network)
            return replace(network, equality="below", sigmoid=True)
        case _:
            if network.outputs < 2:  # noqa: PLR2004 - a choice
                raise NetworkError(
                    "NeuralNetClassifier has too few outputs: got 1; expected one per class; "
                    "use NeuralNetBinaryClassifier"
                )
            _check_decisions(estimator, network)
            binary = network.outputs == 2  # noqa: PLR2004 - argmax takes the first on a tie
            return replace(network, equality="below" if binary else None, sigmoid=True)


def _check_data_path(estimator: Any) -> None:  # noqa: ANN401 - skorch ships no types
    """Reject the user's code between the rows, the module and the decision."""
    kind, nonlinearity = type(estimator).__name__, estimator.predict_nonlinearity
    if nonlinearity != "auto":
        raise NetworkError(
            f"{kind} has an unsupported predict_nonlinearity: got {nonlinearity!r}; "
            "expected 'auto'; move its computation into the module"
        )
    for name in ("dataset", "iterator_valid"):
        origin = str(getattr(getattr(estimator, name), "__module__", ""))
        if not origin.startswith(("skorch.", "torch.utils.data.")):
            raise NetworkError(
                f"{kind} has a custom {name}, which may change the rows: got one from {origin!r}; "
                "expected skorch's; change the rows in a pipeline before it"
            )


def _check_end(estimator: Any, squash: Squash | None) -> None:  # noqa: ANN401 - skorch ships no types
    """Reject a criterion that does not match the end of the module: skorch decides differently."""
    kind = type(estimator).__name__
    # torch.compile wraps the criterion.
    original = getattr(estimator.criterion_, "_orig_mod", estimator.criterion_)
    origins = {parent.__name__: parent.__module__ for parent in type(original).__mro__}
    matches = [name for name in CRITERIA if origins.get(name, "").startswith("torch.nn.")]
    criterion = matches[0] if matches else OTHER
    if squash in ENDS[kind].get(criterion, ()):
        return
    allowed = ", or ".join(
        f"{name} with a module that ends in {' or '.join(end or 'plain scores' for end in ends)}"
        for name, ends in ENDS[kind].items()
    )
    raise NetworkError(
        f"{kind} has a criterion that does not match the end of its module: "
        f"got {criterion} with {squash or 'plain scores'}; expected {allowed}"
    )


def _check_values(estimator: Any, network: Network) -> None:  # noqa: ANN401 - skorch ships no types
    """Compare skorch's predictions with the scores."""
    rng = np.random.default_rng(0)
    for scale in SCALES:
        rows = _draw_exact_rows(network, scale, rng)
        values = _predict(estimator, network, rows)
        check_agreement(network, rows, values, "skorch's own", rounded=True)


def _check_decisions(estimator: Any, network: Network) -> None:  # noqa: ANN401 - skorch ships no types
    """Compare skorch's decisions with those by the scores, unless rounding may change them."""
    rng = np.random.default_rng(0)
    for scale in SCALES:
        rows = _draw_exact_rows(network, scale, rng)
        decisions, certain = _decide(network, rows)
        wrong = certain & (_predict(estimator, network, rows).ravel() != decisions)
        if wrong.any():
            raise NetworkError(
                f"FETA's decisions differ from those of {type(estimator).__name__}'s predict: "
                f"got {wrong.sum()} differences in {len(rows)} rows; expected none; "
                "check that nothing but the module changes its inputs and outputs"
            )


def _decide(network: Network, rows: Matrix) -> tuple[Matrix, Flags]:
    """Return the class of each row, and whether the source's rounding cannot change it."""
    arithmetic = network.arithmetic
    values, sizes = network.first.terms(rows, range(network.width))
    first = error_bounds.first_layer(network.first, values, sizes, arithmetic)
    enclosure = error_bounds.scores(network, first, arithmetic)
    scores = enclosure.values
    if network.outputs == 1:
        scores = np.column_stack([np.zeros(len(rows)), scores])
    second, best = np.sort(scores, axis=1)[:, -2:].T
    source_error = 2 * enclosure.errors.max(axis=1) + sigmoid_error(0.0, arithmetic)
    return np.argmax(scores, axis=1), best - second > source_error


def _draw_exact_rows(network: Network, scale: float, rng: np.random.Generator) -> Matrix:
    """Draw rows that the source's format represents exactly."""
    rows = draw_rows(network, scale, rng)
    return rows.astype(network.source).astype(np.float64)


def _predict(estimator: Any, network: Network, rows: Matrix) -> Matrix:  # noqa: ANN401 - skorch ships no types
    return run_module(
        lambda table: np.asarray(estimator.predict(table.astype(network.source))), rows
    )
