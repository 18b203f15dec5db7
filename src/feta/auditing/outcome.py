"""Answer: what a person gets, whatever the rule: a decision, a class's number, or a score."""

from feta.arrays import Answers, Flags, Matrix
from feta.predict.fair_predictor import FairPredictor
from feta.rule import Argmax, Outcome, Rule, Tolerance
from feta.verdict.tally import Tally


def fair_outcomes(predictor: FairPredictor, people: Matrix) -> list[Outcome | None]:
    """Ask a fair predictor; None where it could not settle a person in time."""
    rule = predictor.model.rule
    if isinstance(rule, Tolerance):
        spread = predictor.medians(people)
        return _where(spread.decided, spread.median)
    return majorities(rule, predictor.votes(people))


def majorities(rule: Rule, counts: Tally) -> list[Outcome | None]:
    """Give what most counterparts get; None where that is not certain."""
    several = isinstance(rule, Argmax)
    return _where(counts.decided, counts.winner if several else counts.decision)


def _where(settled: Flags, answers: Answers) -> list[Outcome | None]:
    pairs = zip(answers.tolist(), settled.tolist(), strict=True)
    return [answer if certain else None for answer, certain in pairs]
