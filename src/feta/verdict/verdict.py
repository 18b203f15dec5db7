"""Verdicts: Fair, Unfair or Unknown, each with its evidence."""

from dataclasses import dataclass
from enum import StrEnum

from feta.deprecation import renamed
from feta.scorer.protocol import DoubtKind, Provenance
from feta.verdict.certificate import Certificate
from feta.verdict.counterexample import Counterexample, RuntimeStatus


class Reason(StrEnum):
    """Why there is no verdict, in a sentence that the user can act on."""

    OUT_OF_TIME = "the time budget ran out; raise it, or narrow the sensitive domains"
    OUT_OF_NODES = "the budget of evaluations ran out; raise it, or narrow the sensitive domains"
    EVERYBODY_UNDECIDED = (
        "some people are neither proved to be treated fairly nor found to be treated unfairly; "
        "raise the budget, or ask about fewer people by a condition"
    )
    SOLVER_INFEASIBLE = (
        "the solver claims that no counterexample exists, and bounds could not prove it; "
        "a solver's claim is not a proof"
    )
    SOLVER_FAILED = "the solver failed, and bounds could not decide; try another engine"
    SOLVER_LIMIT = (
        "the program is larger than the solver's license allows; "
        "use the engine 'milp' or 'milp:scip'"
    )
    NOT_WITNESSED = (
        "the solver found too few counterparts to make the majority certain; "
        "use the engine 'lattice' or 'exhaustive'"
    )
    NOT_ADMITTED = (
        "the relation admits no person with these sensitive values, so nobody is compared with "
        "this person; correct the row or the relation"
    )
    NOBODY = (
        "nobody to compare with: the person is the only one whom the relation admits with these "
        "other columns"
    )
    NO_COUNTERPART = (
        "the relation admits nobody with these other columns; correct the row or the relation, or "
        'write if_none = "all" in [relation] to decide over all combinations'
    )
    NO_VOTES = (
        "no counterpart with these other columns has a vote; give weights with more assignments, "
        'or write if_none = "all" in [relation] to decide over all combinations'
    )
    OWN_DIFFERS = (
        "the person's own values are not plausible, and the person's own decision differs from the "
        "one that all plausible people with the same other columns get"
    )
    NOT_SEPARABLE = (
        "some scores cannot be separated from a tie at the highest precision; "
        "the model may tie there exactly. Smooth activations need the extra 'smooth' for more "
        "than float64: pip install 'feta-fair[smooth]'"
    )
    NONDETERMINISTIC = (
        "the model gave different answers to the same row; fix its random state, and evaluate it "
        "without state and independently of the batch"
    )
    NO_ANSWER = (
        "the model gave no valid answer for some counterparts; correct the model, or narrow the "
        "sensitive domains"
    )
    COUNTING_BUDGET = (
        "the budget of the counted model is spent; raise max_rows or max_seconds, or narrow the "
        "sensitive domains"
    )
    NOT_REPRODUCED = (
        "the counterexample of the engine does not replay in exact arithmetic; try another engine"
    )


# Why people remain undecided whose counterparts have no reliable answers.
DOUBT_REASONS: dict[DoubtKind, Reason] = {
    "nondeterministic": Reason.NONDETERMINISTIC,
    "no answer": Reason.NO_ANSWER,
    "budget": Reason.COUNTING_BUDGET,
}


@dataclass(frozen=True, slots=True)
class Effort:
    """Cost of a verdict."""

    seconds: float = 0.0
    evaluations: int = 0
    exact_evaluations: int = 0
    solver_calls: int = 0


@dataclass(frozen=True, slots=True)
class Fair:
    """No counterexample exists; the certificate proves it."""

    certificate: Certificate
    runtime: RuntimeStatus = "sensitive"
    effort: Effort = Effort()
    provenance: Provenance = "proved"  # how the model was read

    reading = renamed("reading", "provenance")


@dataclass(frozen=True, slots=True)
class Unfair:
    """Two counterparts get different decisions.

    `optimal`: it is proved that no counterexample has a larger gap. `replayed`: whether the user's
    runtime also gives the two different decisions; None if it was not evaluated.
    """

    counterexample: Counterexample
    optimal: bool = False
    effort: Effort = Effort()
    provenance: Provenance = "proved"
    replayed: bool | None = None
    detail: str = ""  # why the pair is not the worst one, if the model has no gaps

    reading = renamed("reading", "provenance")

    @property
    def runtime(self) -> RuntimeStatus:
        """Whether the source runtime provably gives the two different decisions as well."""
        return "sensitive" if self.replayed is False else self.counterexample.runtime


@dataclass(frozen=True, slots=True)
class Unknown:
    """No verdict, and the reason; `best` is a counterexample that may not be the worst."""

    reason: Reason
    best: Counterexample | None = None
    runtime: RuntimeStatus = "sensitive"
    effort: Effort = Effort()
    solver: str = ""  # the solver that failed to decide, if any
    provenance: Provenance = "proved"
    detail: str = ""  # a row that explains the reason, if any

    reading = renamed("reading", "provenance")


Verdict = Fair | Unfair | Unknown
