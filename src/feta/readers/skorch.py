"""Skorch: a torch module in scikit-learn's clothing, read with the way it turns scores into classes."""

from dataclasses import replace
from typing import Any

import numpy as np

from feta.arrays import Flags, Matrix
from feta.errors import NetworkError
from feta.readers.torch.check import SCALES, drawn_rows, run
from feta.readers.torch.read import read_module
from feta.rounding import sigmoid_error
from feta.scorer.network import error_bounds
from feta.scorer.network.agreement import Squash, check_agreement
from feta.scorer.network.network import Network

# Before it decides, skorch takes the softmax or the sigmoid of what the module gives with the first two
# of these criteria or their subclasses; with all others it takes the outputs as they are.
CRITERIA = ("CrossEntropyLoss", "BCEWithLogitsLoss", "BCELoss")
OTHER = "another criterion"

# What a module may end in for each of skorch's estimators and criteria.
ENDS: dict[str, dict[str, tuple[Squash | None, ...]]] = {
    "NeuralNetBinaryClassifier": {"BCEWithLogitsLoss": (None,), "BCELoss": ("sigmoid",)},
    "NeuralNetClassifier": {
        "CrossEntropyLoss": (None, "log_softmax"),
        OTHER: ("softmax", "log_softmax"),
    },
    "NeuralNetRegressor": {OTHER: (None,)},
}


def is_skorch(estimator: object) -> bool:
    """Say whether this is one of skorch's estimators; the very types, as a subclass may differ."""
    kind = type(estimator)
    return kind.__module__.startswith("skorch.") and kind.__name__ in ENDS


def read_skorch(estimator: Any) -> Network:  # noqa: ANN401 - skorch ships no types
    """Read the trained module; all of skorch's classifiers compare strictly."""
    _check_feed(estimator)
    network, squashed = read_module(estimator.module_, any_mode=True)
    _check_end(estimator, squashed)
    match type(estimator).__name__:
        case "NeuralNetRegressor":
            _check_values(estimator, network)
            return network
        case "NeuralNetBinaryClassifier":
            if network.outputs != 1 or estimator.threshold != 0.5:  # noqa: PLR2004 - σ(0)
                message = f"NeuralNetBinaryClassifier must have one output and the threshold 0.5, got {network.outputs} and {estimator.threshold}; give the threshold in the schema instead"
                raise NetworkError(message)
            _check_decisions(estimator, network)
            return replace(network, equality="below", sigmoid=True)
        case _:
            if network.outputs < 2:  # noqa: PLR2004 - a choice
                raise NetworkError(
                    "NeuralNetClassifier must have an output a class, got 1; use NeuralNetBinaryClassifier"
                )
            _check_decisions(estimator, network)
            two = network.outputs == 2  # noqa: PLR2004 - argmax takes the first on a tie
            return replace(network, equality="below" if two else None, sigmoid=True)


def _check_feed(estimator: Any) -> None:  # noqa: ANN401 - skorch ships no types
    """Refuse code of the user between the rows, the module and the decision."""
    kind, bend = type(estimator).__name__, estimator.predict_nonlinearity
    if bend != "auto":
        message = f"{kind} must have predict_nonlinearity 'auto', got {bend!r}; write what it does into the module"
        raise NetworkError(message)
    for name in ("dataset", "iterator_valid"):
        home = str(getattr(getattr(estimator, name), "__module__", ""))
        if not home.startswith(("skorch.", "torch.utils.data.")):
            message = f"{kind} must have the {name} that skorch comes with, got one of {home!r}, which may change the rows; do that in a pipeline before it"
            raise NetworkError(message)


def _check_end(estimator: Any, squashed: Squash | None) -> None:  # noqa: ANN401 - skorch ships no types
    """Refuse a module whose end and criterion do not go together: skorch would decide otherwise."""
    kind = type(estimator).__name__
    given = getattr(estimator.criterion_, "_orig_mod", estimator.criterion_)  # before torch.compile
    homes = {one.__name__: one.__module__ for one in type(given).__mro__}
    torchs = [one for one in CRITERIA if homes.get(one, "").startswith("torch.nn.")]
    criterion = torchs[0] if torchs else OTHER
    if squashed in ENDS[kind].get(criterion, ()):
        return
    allowed = "; ".join(
        f"{name} with a module that ends in {' or '.join(end or 'plain scores' for end in ends)}"
        for name, ends in ENDS[kind].items()
    )
    got = f"{criterion} with {squashed or 'plain scores'}"
    raise NetworkError(f"{kind} must have {allowed}; got {got}")


def _check_values(estimator: Any, network: Network) -> None:  # noqa: ANN401 - skorch ships no types
    """Compare skorch's own predictions with the scores."""
    rng = np.random.default_rng(0)
    for scale in SCALES:
        rows = _entries(network, scale, rng)
        given = _predicted(estimator, network, rows)
        check_agreement(network, rows, given, "skorch's own", rounded=True)


def _check_decisions(estimator: Any, network: Network) -> None:  # noqa: ANN401 - skorch ships no types
    """Compare skorch's own decisions with those by the scores, but for those that rounding tips."""
    rng = np.random.default_rng(0)
    for scale in SCALES:
        rows = _entries(network, scale, rng)
        ours, sure = _decided(network, rows)
        wrong = sure & (_predicted(estimator, network, rows).ravel() != ours)
        if wrong.any():
            message = f"FETA's decisions must equal those of {type(estimator).__name__}'s predict, but {wrong.sum()} of {len(rows)} differ; check that nothing but the module changes its inputs and outputs"
            raise NetworkError(message)


def _decided(network: Network, rows: Matrix) -> tuple[Matrix, Flags]:
    """Give the class of each row, and whether the source's rounding leaves it alone."""
    arithmetic = network.arithmetic
    values, sizes = network.first.terms(rows, range(network.width))
    first = error_bounds.first_layer(network.first, values, sizes, arithmetic)
    scores = error_bounds.scores(network, first, arithmetic)
    whole = scores.values
    if network.outputs == 1:
        whole = np.column_stack([np.zeros(len(rows)), whole])
    second, best = np.sort(whole, axis=1)[:, -2:].T
    doubt = 2 * scores.errors.max(axis=1) + sigmoid_error(0.0, arithmetic)
    return np.argmax(whole, axis=1), best - second > doubt


def _entries(network: Network, scale: float, rng: np.random.Generator) -> Matrix:
    """Draw rows that the source's own format holds exactly."""
    rows = drawn_rows(network, scale, rng)
    return rows.astype(network.source).astype(np.float64)


def _predicted(estimator: Any, network: Network, rows: Matrix) -> Matrix:  # noqa: ANN401 - skorch ships no types
    return run(lambda table: np.asarray(estimator.predict(table.astype(network.source))), rows)
