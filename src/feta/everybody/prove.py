"""The public question about everybody: `feta.prove`, and `feta.verify(FairEverywhere(model))`."""

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from feta.engine.protocol import UNLIMITED, Budget
from feta.errors import EngineError, SchemaError, unknown_choice
from feta.everybody import population as populations
from feta.everybody.population import Population
from feta.everybody.proving import DrawState, Proving
from feta.everybody.result import Everybody
from feta.everybody.where import Where
from feta.model import Model
from feta.query import FairEverywhere
from feta.verdict.certificate import Certificate
from feta.verdict.verdict import Effort, Fair, Reason, Unfair, Unknown, Verdict

if TYPE_CHECKING:
    import pandas as pd

    from feta.space.records import Record

DEFAULT = Budget(seconds=60.0)
ENGINES = ("auto", "branch")


def prove(
    model: Model,
    where: str | None = None,
    population: "pd.DataFrame | Sequence[Record] | None" = None,
    budget: Budget = DEFAULT,
    *,
    marginals: bool = False,
    alpha: float = 0.05,
    seed: int = 0,
    progress: Callable[[Everybody], None] = lambda _: None,
) -> Everybody:
    """Find out how many people are treated unfairly, among all whom the space allows.

    Shares are proved where bounds or enumeration allow it; people who are drawn and decided exactly
    give an estimate for every kind of model.

    Parameters
    ----------
    model
        Space, scorer and rule.
    where
        A condition on columns that are not sensitive, such as "age >= 18 and town == 'Ulm'".
    population
        Without it, everybody counts equally: all values of a column are equally frequent. With the
        rows of a table, these are the people.
    budget
        Limits on time, and on the number of people who are drawn.
    marginals
        Take only the frequencies of each column from the table: columns are independent.
    alpha
        The estimate holds at all moments at once with the probability 1 − alpha.
    seed
        Seed of the draws.
    progress
        Called about once per second with the answer so far.

    Returns
    -------
    Everybody
        Proved shares, the estimate, a counterexample, and regions where unfairness lives.

    Examples
    --------
    >>> import feta
    >>> age = feta.Integer("age", 18, 27, sensitive=True)
    >>> space = feta.FeatureSpace((age, feta.Integer("income", 0, 99)))
    >>> network = feta.Network.from_layers([([[1.0, 1.0]], [-50.5])])
    >>> model = feta.Model(space, network, threshold=0.0)
    >>> answer = feta.prove(model, budget=feta.Budget(evaluations=1000))
    >>> answer.fair, answer.unfair, answer.undecided
    (Fraction(91, 100), Fraction(9, 100), Fraction(0, 1))
    """
    people = population_of(model, where, population, marginals=marginals)
    if budget == UNLIMITED:
        raise SchemaError(
            "no limit: got a budget without seconds and evaluations; expected one of them, because "
            "draws never end; use feta.Budget(seconds=60)"
        )
    run = proving(model, people, alpha=alpha, seed=seed)
    run.run(budget, progress)
    return run.result()


def population_of(
    model: Model,
    where: str | None,
    table: "pd.DataFrame | Sequence[Record] | None",
    *,
    marginals: bool,
) -> Population:
    """Return the people in question."""
    condition = Where.of(where, model.space)
    if table is None:
        if marginals:
            raise SchemaError(
                "marginals of nothing: got marginals without a table; expected a table; pass it "
                "as the population"
            )
        return populations.uniform(model.space, condition)
    people = np.asarray(model.space.encode(table), dtype=np.float64)
    if marginals:
        return populations.marginals(model.space, people, condition)
    return populations.rows(model.space, people, condition)


def question_of(model: Model, population: Population) -> str:
    """Return the digest of model, condition and population."""
    text = f"everybody\n{model.fingerprint}\n{population.digest}"
    return hashlib.sha256(text.encode()).hexdigest()


def proving(
    model: Model,
    population: Population,
    *,
    alpha: float = 0.05,
    seed: int = 0,
    resume: DrawState | None = None,
) -> Proving:
    """Return a run that has not started."""
    question = question_of(model, population)
    return Proving(model, population, question=question, alpha=alpha, seed=seed, resume=resume)


def verify_everywhere(query: FairEverywhere, *, engine: str, budget: Budget) -> Verdict:
    """Answer whether everybody is treated fairly: a proof, a counterexample, or `Unknown`."""
    if engine not in ENGINES:
        raise EngineError(f"unknown engine for FairEverywhere: {unknown_choice(engine, ENGINES)}")
    model = query.model
    population = population_of(model, query.where, None, marginals=False)
    run = proving(model, population)
    run.run(DEFAULT if budget == UNLIMITED else budget, until_found=True)
    answer = run.result()
    effort = Effort(evaluations=answer.draws.people)
    provenance = model.scorer.provenance
    if answer.counterexample is not None:
        return Unfair(answer.counterexample, effort=effort, provenance=provenance)
    if not answer.nobody:
        why = Reason.EVERYBODY_UNDECIDED
        return Unknown(why, effort=effort, provenance=provenance, detail=answer.unproved)
    certificate = Certificate(query.digest, engine="branch", proof=run.proof)
    return Fair(certificate, effort=effort)
