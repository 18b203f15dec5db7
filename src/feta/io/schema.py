"""Schemas: a feature space, its decision rule and the scaling that a network expects."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from feta.errors import SchemaError, unknown_choice
from feta.io.class_names import check_order, check_outcomes
from feta.io.regular_file import atomic_write
from feta.io.schema_file import Decision, SchemaFile, read_schema_file
from feta.io.schema_writer import format_schema
from feta.io.table_options import TableOptions
from feta.model import Model
from feta.relation.all_sensitive_values import AllSensitiveValues
from feta.relation.protocol import Relation
from feta.rule import Argmax, OneVsRest, Rule, Threshold, Tolerance
from feta.scorer.protocol import Scorer, may_be_log_odds
from feta.space.attribute import Categorical, Derived
from feta.space.feature_space import FeatureSpace

# How far rounding may move an output beyond the limits of a clip.
CLIP_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Schema:
    """The user's description of a model: columns, decision, and the scaling that it expects."""

    file: SchemaFile

    @property
    def space(self) -> FeatureSpace:
        """The feature space."""
        return self.file.space

    @property
    def decision(self) -> Decision:
        """The names of the decisions, and their threshold, classes or tolerance."""
        return self.file.decision

    @property
    def table(self) -> TableOptions:
        """The options with which pandas reads the user's CSV files."""
        return self.file.table

    @property
    def relation(self) -> Relation:
        """Who is a counterpart of whom."""
        return self.file.relation or AllSensitiveValues(self.space)

    @property
    def rule(self) -> Rule:
        """The rule that turns scores into decisions."""
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
        sides, outcomes = ("above", "below"), ("favorable", "unfavorable")
        favors = "above" if decision.favors is None else decision.favors
        if favors not in sides:
            problem = unknown_choice(favors, sides)
            raise SchemaError(f"[decision]: invalid favors: {problem}")
        if decision.equality not in (None, *outcomes):
            problem = unknown_choice(decision.equality, outcomes)
            raise SchemaError(f"[decision]: invalid equality: {problem}")
        if decision.score is not None:
            rule = Threshold(decision.score, favors)  # type: ignore[arg-type]  # checked above
        else:
            probability = 0.5 if decision.probability is None else decision.probability
            rule = Threshold.at_probability(probability, favors)  # type: ignore[arg-type]  # checked above
        return replace(rule, equality=decision.equality)  # type: ignore[arg-type]  # checked above

    @property
    def centers(self) -> list[float]:
        """The numbers that the network expects to be subtracted, one per encoded column."""
        return self._per_column(self.file.centers, default=0.0)

    @property
    def scales(self) -> list[float]:
        """The numbers by which the network expects the columns to be divided."""
        return self._per_column(self.file.scales, default=1.0)

    def _per_column(self, numbers: dict[str, float], *, default: float) -> list[float]:
        columns: list[float] = []
        for attribute in self.space.attributes:
            numeric = not isinstance(attribute, Categorical | Derived)
            number = numbers.get(attribute.name, default) if numeric else default
            # One-hot columns, and the flag of a number that may be missing, are not scaled.
            columns += [number, *[default] * (attribute.width - 1)]
        return columns

    @property
    def scaled(self) -> bool:
        """Whether the network expects scaled columns."""
        return any(self.centers) or any(scale != 1.0 for scale in self.scales)

    def _rule_of(self, scorer: Scorer) -> Rule:
        """Return the rule on scores; with a log link, `score` in [decision] is a prediction."""
        rule, decision = self.rule, self.decision
        if scorer.link != "log" or rule.threshold is None:
            return rule
        if decision.score is None:
            raise SchemaError(
                "[decision]: a threshold is a probability, but the model predicts positive "
                "numbers; write score = … for a decision by its prediction"
            )
        mapped = Threshold.at_prediction(decision.score, self._threshold.favors)
        return replace(mapped, equality=self._threshold.equality)

    def score_note(self, scorer: Scorer) -> str:
        """Explain `threshold` for a network without probabilities; empty if it has them."""
        decision, rule = self.decision, self.rule
        if rule.threshold is None or decision.score is not None or scorer.link != "identity":
            return ""
        probability = 0.5 if decision.probability is None else decision.probability
        if scorer.outputs == 1:
            return (
                "the model has no sigmoid at its end, so its outputs are treated as logits and "
                f"threshold = {probability:g} means score = 0.0; write score = 0.0 in [decision] "
                "if that is right, or score = 0.5 if the outputs themselves are compared with 0.5"
            )
        if probability == 0.5:  # noqa: PLR2004 - the larger output decides, with or without a softmax
            return ""
        return (
            f"the model gives no probabilities, so threshold = {probability:g} is compared with "
            "the softmax of its two outputs; export the model with its softmax if that is right, "
            "or write score = … in [decision] for the second output minus the first"
        )

    def _check_probability(self, scorer: Scorer) -> None:
        """Reject a probability for an output that is not one; 0.5 may mean its sign."""
        if scorer.link == "identity" and not (may_be_log_odds(scorer) or _has_own_scores(scorer)):
            raise SchemaError(
                "[decision]: a threshold is a probability, but the model predicts numbers; write "
                "tolerance = … for a regression, or score = … for a decision by its prediction"
            )
        probability = self.decision.probability
        if scorer.link != "identity" or scorer.outputs != 1 or probability in (None, 0.5):
            return
        logit = self._threshold.value
        if _has_own_scores(scorer):
            raise SchemaError(
                f"[decision]: threshold = {probability!r} is a probability, but the estimator "
                "gives scores that are no log-odds, and decides by their sign; remove threshold, "
                "or write score = … for a threshold on its scores"
            )
        raise SchemaError(
            f"[decision]: threshold = {probability!r} is a probability, but the model has no "
            f"sigmoid at its end and gives scores; write score = {logit!r} if your code applies "
            f"the sigmoid to its outputs, score = {probability!r} if it compares the outputs "
            "themselves, or export the model with its sigmoid"
        )

    def check_classes(self, classes: Sequence[object]) -> None:
        """Reject outcomes that contradict the classes of an estimator, its `classes_`."""
        names = [str(name) for name in classes]
        check_order(self.decision, names)
        if self.rule.threshold is not None and len(names) == 2:  # noqa: PLR2004 - two sides
            check_outcomes(self.decision, names)

    def outcome_classes(self, classes: Sequence[object]) -> tuple[tuple[str, str], ...]:
        """Pair the outcomes with the classes that they are; empty if their names are equal."""
        rule, names = self.rule, [str(name) for name in classes]
        if rule.threshold is not None and len(names) == 2:  # noqa: PLR2004 - two sides
            outcomes: tuple[str, ...] = (self.decision.favorable, self.decision.unfavorable)
            sides = names[::-1] if rule.favors == "above" else names
        else:
            outcomes, sides = self.decision.classes, names
        if list(outcomes) == sides or len(outcomes) != len(sides):
            return ()
        return tuple(zip(outcomes, sides, strict=True))

    def model(self, scorer: Scorer) -> Model:
        """Fold the scaling into the scorer; return the model of space, scorer and rule."""
        folded = scorer.unscaled(self.space, self.centers, self.scales)
        rule = self._rule_of(scorer)
        _check_outputs(rule, scorer)
        if rule.threshold is None:
            return Model(self.space, folded, rule, relation=self.relation)
        names = (self.decision.unfavorable, self.decision.favorable)
        if self.decision.score is not None:
            return Model(self.space, folded, rule, outcomes=names, relation=self.relation)
        _check_logits(scorer)
        self._check_probability(scorer)
        if may_be_log_odds(folded):
            folded = folded.with_link("logit")
        return Model(self.space, folded, rule, outcomes=names, relation=self.relation)


def _has_own_scores(scorer: Scorer) -> bool:
    """Return whether the source is an estimator, which states what its scores mean."""
    return scorer.link == "identity" and scorer.equality is not None


def _check_logits(scorer: Scorer) -> None:
    """Reject outputs between 0 and 1 as logits: they are probabilities already."""
    if scorer.link != "identity":
        return
    lowest, highest = scorer.output_limits
    constant = np.array_equal(lowest, highest)
    inside = (lowest >= -CLIP_TOLERANCE).all() and (highest <= 1 + CLIP_TOLERANCE).all()
    if inside and not constant:
        raise SchemaError(
            "[decision]: a threshold applies to logits, but all outputs of the network are "
            "between 0 and 1, like probabilities; write score = 0.5 instead, or score = 0.0 if "
            "they are logits"
        )


def _check_outputs(rule: Rule, scorer: Scorer) -> None:
    """Reject a rule that does not fit the outputs; the message names one that does."""
    if scorer.outputs not in rule.output_counts:
        raise SchemaError(_wrong_outputs(rule, scorer.outputs))
    if rule.tolerance is not None and scorer.link == "logit":
        raise SchemaError(
            "a tolerance applies to scores, but the network ends in a sigmoid; "
            "export it without the sigmoid"
        )


def _wrong_outputs(rule: Rule, n_outputs: int) -> str:
    outputs = f"the network has {n_outputs} output{'s' if n_outputs > 1 else ''}"
    if rule.tolerance is not None:
        return (
            f"a tolerance applies to one score, but {outputs}; "
            "list their classes in [decision] instead"
        )
    if not rule.classes:
        return (
            f"{outputs}, but [decision] lists no classes; "
            'write classes = ["…", "…"] in the order of the outputs'
        )
    lists = f"[decision] lists {len(rule.classes)} classes, but {outputs}"
    if n_outputs == 1:
        return f"{lists}; write favorable, unfavorable and a threshold instead"
    return f"{lists}; list one class per output"


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
    write_schema_text(format_schema(schema.file), path)


def write_schema_text(text: str, path: str | Path) -> None:
    """Write the text of a schema; an existing file is replaced at once or not at all."""
    with atomic_write(Path(path)) as part:
        part.write_text(text, encoding="utf-8")
