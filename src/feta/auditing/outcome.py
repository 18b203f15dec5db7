"""Fair outcomes of people: decisions, class indices or scores, depending on the rule."""

import numpy as np

from feta.arrays import Answers, Flags, Matrix
from feta.predict.fair_predictor import FairPredictor
from feta.rule import Outcome, Rule
from feta.verdict.tally import Tally


def fair_outcomes(predictor: FairPredictor, people: Matrix) -> list[Outcome | None]:
    """Return each person's fair outcome; None if the predictor could not decide it in time."""
    rule = predictor.model.rule
    if predictor.vote != "majority":
        means = predictor.means(people)
        return where_decided(means.decided, means.outcomes)
    if rule.tolerance is not None:
        spread = predictor.medians(people)
        return where_decided(spread.decided, spread.median)
    return majorities(rule, predictor.votes(people))


def majorities(rule: Rule, counts: Tally) -> list[Outcome | None]:
    """Return what most counterparts of each person get; None if that is not certain."""
    return where_decided(counts.decided, rule.answers(counts.winner.astype(np.int8)))


def where_decided(decided: Flags, answers: Answers) -> list[Outcome | None]:
    """Return the answers of people, and None for those who are not decided."""
    pairs = zip(answers.tolist(), decided.tolist(), strict=True)
    return [answer if certain else None for answer, certain in pairs]
