"""The [decision] of a first schema: what the model states, and what a person answered."""

from dataclasses import dataclass, replace
from typing import Literal

from feta.errors import SchemaError, unknown_choice
from feta.io.sanitize import listed
from feta.io.schema_file import Decision
from feta.readers.sklearn.pipeline import split_pipeline
from feta.readers.source import ModelSource


@dataclass(frozen=True, slots=True)
class StatedDecision:
    """What a person states about the decision; None: not stated."""

    favorable: str | None = None
    unfavorable: str | None = None
    favors: Literal["above", "below"] | None = None
    tolerance: float | None = None

    @property
    def states_outcome(self) -> bool:
        """Whether a side is stated to be favorable."""
        return self.favorable is not None or self.favors is not None


def classes_of(source: ModelSource) -> list[str]:
    """Return the names of the model's classes; empty if it has none."""
    if source.estimator is None:
        return []
    classes = getattr(split_pipeline(source.estimator)[1], "classes_", ())
    return [str(name) for name in classes]


def infer_decision(source: ModelSource) -> Decision:
    """Name the decisions after the model's classes, if it has names for them."""
    if source.network is not None:
        if source.network.outputs == 1 and not source.network.sigmoid:
            return Decision(score=0.0)  # its outputs are not probabilities
        if source.network.outputs <= 2:
            return Decision(probability=0.5)
        return Decision(classes=tuple(f"class {n}" for n in range(source.network.outputs)))
    names = classes_of(source)
    if not names:
        return Decision(tolerance=0.0)
    if len(names) == 2:
        return Decision(favorable=names[1], unfavorable=names[0], probability=0.5)
    return Decision(classes=tuple(names))


def with_statements(decision: Decision, stated: StatedDecision, names: list[str]) -> Decision:
    """Return the decision with what a person stated; `names` are the model's classes."""
    if stated.tolerance is not None:
        return _with_tolerance(decision, stated, stated.tolerance)
    if stated == StatedDecision():
        return decision
    if decision.classes or decision.tolerance is not None:
        what = "several classes" if decision.classes else "numbers"
        raise SchemaError(
            f"no outcome of two is favorable: got --favorable or --favors for a model that "
            f"predicts {what}; expected two classes; omit these options"
        )
    return _of_classes(decision, stated, names) if names else _of_names(decision, stated)


def _with_tolerance(decision: Decision, stated: StatedDecision, tolerance: float) -> Decision:
    if stated.states_outcome or stated.unfavorable is not None:
        raise SchemaError(
            "a tolerance has no favorable outcome: got --tolerance with --favorable, --unfavorable "
            "or --favors; expected one kind; omit the other"
        )
    if decision.classes or decision.favorable != "favorable":
        raise SchemaError(
            "the model predicts classes: got --tolerance; expected a model that predicts numbers; "
            "omit it"
        )
    return Decision(tolerance=tolerance)


def _of_classes(decision: Decision, stated: StatedDecision, names: list[str]) -> Decision:
    """Return the decision for one of the model's two classes."""
    if stated.favorable is None:
        raise SchemaError(
            f"the favorable class is not named: got no --favorable; expected {listed(names)}"
        )
    if stated.favorable not in names:
        raise SchemaError(f"invalid --favorable: {unknown_choice(stated.favorable, names)}")
    (other,) = [name for name in names if name != stated.favorable]
    side: Literal["above", "below"] = "above" if stated.favorable == names[1] else "below"
    if stated.unfavorable not in (None, other):
        raise SchemaError(
            f"invalid --unfavorable: {unknown_choice(str(stated.unfavorable), [other])}"
        )
    if stated.favors not in (None, side):
        raise SchemaError(
            f"invalid --favors: got {stated.favors!r}; expected {side!r}, because "
            f"{stated.favorable!r} is the model's {'second' if side == 'above' else 'first'} "
            "class; omit it"
        )
    favors = None if side == "above" else side
    return replace(decision, favorable=stated.favorable, unfavorable=other, favors=favors)


def _of_names(decision: Decision, stated: StatedDecision) -> Decision:
    """Return the decision of a model without names of classes."""
    favors = "below" if stated.favors == "below" else None
    favorable, unfavorable = stated.favorable, stated.unfavorable
    if favorable is not None and favorable == unfavorable:
        raise SchemaError(
            f"two outcomes have one name: got {favorable!r} twice; expected two names; change "
            "--unfavorable"
        )
    return replace(
        decision,
        favorable=favorable or decision.favorable,
        unfavorable=unfavorable or decision.unfavorable,
        favors=favors,
    )


def decision_comments(decision: Decision, *, named: bool) -> list[str]:
    """Return comments about the favorable outcome of two, if it is a guess."""
    if decision.classes or decision.tolerance is not None:
        return []
    if not named:  # without names of classes
        return ['A guess: high scores are favorable. If low scores are, add favors = "below".']
    return [
        "A guess: high scores, the model's second class, are favorable.",
        'If the first class is, exchange the two names and add favors = "below".',
    ]


def decision_check(decision: Decision, *, stated: bool) -> str | None:
    """Return what a person must check in the decision; None if nothing."""
    if decision.classes:
        return "[decision] must name the classes, in the order of the network's outputs."
    if decision.tolerance is not None:
        return None if stated else MUST_STATE_TOLERANCE
    guess = (
        f"[decision] must name the favorable outcome: {decision.favorable!r} for high scores is a "
        'guess; if it is wrong, swap the outcomes (favors = "below"; see its comment)'
    )
    if decision.score is not None:
        return (
            f"{'[decision] must state the threshold' if stated else guess}; the network has no "
            "final sigmoid, so score = 0.0 means the probability 0.5: write another score if your "
            "program compares its outputs with one; a regression has tolerance = … instead."
        )
    if stated:
        return "[decision] must state the threshold: 0.5, unless your program compares another."
    return f"{guess}; it must state the threshold; a regression has tolerance = … instead."


MUST_STATE_TOLERANCE = (
    "[decision] must state the tolerance: by how much the scores of counterparts may differ; 0.0 "
    "means not at all."
)
