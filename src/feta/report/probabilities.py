"""Probabilities of scores, where the model's link has them."""

from feta.io.sanitize import plain
from feta.model import Model
from feta.rule.words import RuleWords
from feta.verdict.counterexample import Counterexample
from feta.vote.probability import PROBABILITY_LINKS, probability_at


def likely_outcome(model: Model, words: RuleWords) -> str | None:
    """Return the outcome whose probability the model predicts; None if it predicts none."""
    if words.likely is None or model.scorer.link not in PROBABILITY_LINKS:
        return None
    return plain(model.outcomes[words.likely])


def pair_probabilities(model: Model, pair: Counterexample) -> tuple[str, str]:
    """Return the probabilities of both people."""
    first, second = (
        f"{probability_at(score, model.scorer.link):.1%}"
        for score in pair.margins(model.rule).tolist()
    )
    return first, second


def probabilities(model: Model, pair: Counterexample, words: RuleWords) -> str | None:
    """Return the probabilities of a pair in words; None if the model has none."""
    outcome = likely_outcome(model, words)
    if outcome is None:
        return None
    before, after = pair_probabilities(model, pair)
    return f"probability of {outcome}: {before} → {after}"
