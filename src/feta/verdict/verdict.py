"""Verdict: Fair, Unfair or Unknown; no evidence, no verdict."""

from dataclasses import dataclass
from enum import StrEnum

from feta.deprecation import renamed
from feta.scorer.network.network import Provenance
from feta.verdict.certificate import Certificate
from feta.verdict.counterexample import Counterexample, RuntimeStatus


class Reason(StrEnum):
    """Why there is no answer; each is a sentence the user can act on."""

    OUT_OF_TIME = "the time budget ran out; raise it, or narrow the sensitive domains"
    OUT_OF_NODES = "the budget of evaluations ran out; raise it, or narrow the sensitive domains"
    SOLVER_INFEASIBLE = "the solver says that there is no counterexample, and bounds could not prove it; its word is no proof"
    SOLVER_FAILED = "the solver gave up, and bounds could not settle it; try another engine"
    SOLVER_LIMIT = "the program is larger than the solver's licence allows; use the engine 'milp' or 'milp:scip'"
    NOT_WITNESSED = "the solver found too few counterparts to make the majority certain; use the engine 'lattice' or 'exhaustive'"
    NOT_REPRODUCED = "what the engine found does not replay in exact arithmetic; try another engine"


@dataclass(frozen=True, slots=True)
class Effort:
    """What an answer cost."""

    seconds: float = 0.0
    evaluations: int = 0
    exact_evaluations: int = 0
    solver_calls: int = 0


@dataclass(frozen=True, slots=True)
class Fair:
    """No counterexample exists, and here is why."""

    certificate: Certificate
    runtime: RuntimeStatus = "sensitive"
    effort: Effort = Effort()
    provenance: Provenance = "proved"  # "sampled": the model's preprocessing was only tried out

    reading = renamed("reading", "provenance")


@dataclass(frozen=True, slots=True)
class Unfair:
    """Two counterparts are decided apart; `optimal` says that none is farther on the other side.

    `replayed` says whether the user's own runtime decides them apart, where it was asked.
    """

    counterexample: Counterexample
    optimal: bool = False
    effort: Effort = Effort()
    provenance: Provenance = "proved"
    replayed: bool | None = None

    reading = renamed("reading", "provenance")

    @property
    def runtime(self) -> RuntimeStatus:
        """Whether the source's own runtime is sure to decide the two apart as well."""
        return "sensitive" if self.replayed is False else self.counterexample.runtime


@dataclass(frozen=True, slots=True)
class Unknown:
    """No answer, and why; `best` is a counterexample that may not be the farthest."""

    reason: Reason
    best: Counterexample | None = None
    runtime: RuntimeStatus = "sensitive"
    effort: Effort = Effort()
    solver: str = ""  # whose word it was, if a solver's
    provenance: Provenance = "proved"

    reading = renamed("reading", "provenance")


Verdict = Fair | Unfair | Unknown
