"""Fair outcomes of people: decisions, class indices or scores, depending on the rule."""

from feta.arrays import Answers, Flags, Matrix
from feta.predict.fair_predictor import FairPredictor
from feta.rule import Argmax, Outcome, Rule, Tolerance
from feta.verdict.tally import Tally


def fair_outcomes(predictor: FairPredictor, people: Matrix) -> list[Outcome | None]:
    """Return each person's fair outcome; None if the predictor could not decide it in time."""
    rule = predictor.model.rule
    if isinstance(rule, Tolerance):
        spread = predictor.medians(people)
        return _where(spread.decided, spread.median)
    return majorities(rule, predictor.votes(people))


def majorities(rule: Rule, counts: Tally) -> list[Outcome | None]:
    """Return what most counterparts of each person get; None if that is not certain."""
    several = isinstance(rule, Argmax)
    return _where(counts.decided, counts.winner if several else counts.decision)


def _where(decided: Flags, answers: Answers) -> list[Outcome | None]:
    pairs = zip(answers.tolist(), decided.tolist(), strict=True)
    return [answer if certain else None for answer, certain in pairs]
