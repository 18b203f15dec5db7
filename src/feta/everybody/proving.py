"""One run about everybody: structure, draws, enumeration or boxes, until the budget is spent."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Flags, Matrix, Vector
from feta.engine.protocol import Budget
from feta.errors import EngineError, SchemaError
from feta.everybody.boxes import Boxes
from feta.everybody.decide import counterexample, treated
from feta.everybody.half_spaces.certificate import certificate
from feta.everybody.half_spaces.prover import HalfSpaces
from feta.everybody.listing import Listing
from feta.everybody.population import Independent, Population
from feta.everybody.regions import Region, regions_of
from feta.everybody.result import Draws, Everybody, Moment
from feta.everybody.search import search
from feta.everybody.sequence import Interval, interval_of
from feta.model import Model
from feta.scorer.protocol import confirm
from feta.verdict.certificate import BoundsProof, LatticeProof

if TYPE_CHECKING:
    from feta.verdict.counterexample import Counterexample

# People who are drawn at once, and decided in smaller blocks at first. So the sequence of draws
# depends on the seed alone, however fast they are decided.
DRAWN = 2**12
FIRST_BLOCK = 64

# Seconds of a block, between two looks at the clock.
BLOCK_SECONDS = 0.25

# Guided searches, each of a quarter of a second at most.
MOST_SEARCHES = 4

# Draws that are kept to find regions.
MOST_KEPT = 200_000

# Seconds to prove again for a certificate what was proved in another way.
CERTIFIED_SECONDS = 30.0

# Seconds between two moments of the history.
MOMENT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class DrawState:
    """Where the draws of a run have come to; a later run continues from there."""

    question: str  # the digest of model, condition and population
    seed: int
    people: int
    unfair: int
    undecided: int


class Proving:
    """A run, which can be interrupted at any moment: `result` is the answer so far."""

    def __init__(
        self,
        model: Model,
        population: Population,
        *,
        question: str,
        alpha: float = 0.05,
        seed: int = 0,
        resume: DrawState | None = None,
    ) -> None:
        if not 0 < alpha < 1:
            raise SchemaError(f"invalid alpha: got {alpha!r}; expected a number between 0 and 1")
        if model.relation.fingerprint:
            raise EngineError(
                "unknown people for this relation: got another relation than the default one; "
                "expected counterparts who share all columns that are not sensitive; ask about "
                "single people with feta.verify, or leave out the relation"
            )
        if resume is not None and resume.question != question:
            raise SchemaError(
                "the state belongs to another question: got other digests of model, condition or "
                "population; expected those of this run; use the files of the earlier run, or "
                "start a new state"
            )
        self.model, self.population, self.alpha = model, population, alpha
        self._question = question
        self._seed = seed if resume is None else resume.seed
        self._draws = (
            Draws() if resume is None else Draws(resume.people, resume.unfair, resume.undecided)
        )
        self._size = FIRST_BLOCK
        self._n_searches = 0
        self._drawn: tuple[int, Matrix] | None = None
        self._prover: Listing | HalfSpaces | Boxes | None = None
        self._unproved = refusal(model)
        self._structure = not self._unproved and blind(model)
        if not self._unproved and not self._structure:
            self._prover, self._unproved = prover_of(model, population)
        self._pair: Counterexample | None = None
        self._kept: list[tuple[Matrix, Flags]] = []
        self._history: list[Moment] = []
        self._started = time.monotonic()
        self._proof_seconds = self._draw_seconds = 0.0

    @property
    def state(self) -> DrawState:
        """Where the draws have come to."""
        one = self._draws
        return DrawState(self._question, self._seed, one.people, one.unfair, one.undecided)

    @property
    def proof(self) -> LatticeProof | BoundsProof:
        """How everybody was decided, once this is so: all people listed, or the cuts of boxes."""
        if isinstance(self._prover, Listing):
            return LatticeProof(self._prover.people.size)
        return BoundsProof((None,) if self._prover is None else self._prover.cuts())

    def certificate(self, seconds: float = CERTIFIED_SECONDS) -> bytes:
        """Return a certificate of what half-spaces have proved; raise if they cannot.

        What was proved by structure or by enumeration is first proved again by half-spaces.
        """
        proof: HalfSpaces | str
        if isinstance(self._prover, HalfSpaces):
            proof = self._prover
        elif isinstance(self.population, Independent) and not self._unproved:
            proof = HalfSpaces.of(self.model, self.population)
        else:
            proof = self._unproved or "the population consists of the rows of a table"
        if isinstance(proof, str):
            raise SchemaError(
                f"no certificate: {proof}; expected a network with a threshold and a population of "
                "independent columns; leave out --certify"
            )
        assert isinstance(self.population, Independent)
        deadline = time.monotonic() + seconds
        while not proof.searches or (
            proof is not self._prover and not proof.done and time.monotonic() < deadline
        ):
            proof.step()
        return certificate(proof, self.population)

    def run(
        self,
        budget: Budget,
        progress: Callable[[Everybody], None] = lambda _: None,
        *,
        until_found: bool = False,
    ) -> None:
        """Work until the budget is spent or everything is known, or until somebody is found."""
        if self._structure:
            return
        deadline = budget.deadline()
        most = float("inf") if budget.evaluations is None else budget.evaluations
        start, steps = self._draws.people, 0
        while time.monotonic() < deadline and not self._complete(self._draws.people - start):
            if until_found and self._pair is not None:
                break
            left = int(min(most - (self._draws.people - start), DRAWN))
            proves = self._prover is not None and not self._prover.done and steps < most
            if proves and (left <= 0 or self._proves_next()):
                self._step()
                steps += 1
            elif left > 0:
                self._draw(deadline, min(self._size, left))
                self._look(steps, deadline)
            else:
                break
            self._remember(progress)
        confirm(self.model.scorer)  # a counted model was not replaced meanwhile

    def result(self) -> Everybody:
        """Return the answer so far."""
        return self._answer(self._leaves())

    def _answer(self, leaves: tuple[Region, ...]) -> Everybody:
        fair, unfair = self._proved()
        method = "structure" if self._structure else ""
        if not method and self._prover is not None and (fair or unfair):
            method = self._prover.name
        return Everybody(
            self.model,
            self.population.name,
            fair,
            unfair,
            self._draws,
            self._estimate(fair, unfair),
            self._pair,
            leaves,
            method,
            self._unproved,
            time.monotonic() - self._started,
            self.model.scorer.provenance,
            getattr(self._prover, "n_boxes", 0),
            tuple(self._history),
        )

    def _step(self) -> None:
        assert self._prover is not None
        began = time.monotonic()
        self._prover.step()
        if self._prover.witness is not None:
            self._witness(self._prover.witness)
        self._proof_seconds += time.monotonic() - began

    def _proves_next(self) -> bool:
        """Share the time between draws and proof, after a first block of draws."""
        return self._draws.people > 0 and self._proof_seconds <= self._draw_seconds + 0.05

    def _complete(self, drawn: int) -> bool:
        """Return whether nothing remains to be learned: everybody is decided, and enough drawn."""
        fair, unfair = self._proved()
        if fair + unfair < 1:
            return False
        return not unfair or (drawn >= 2**15 and self._pair is not None)

    def _proved(self) -> tuple[Fraction, Fraction]:
        if self._structure:
            return Fraction(1), Fraction(0)
        if self._prover is None:
            return Fraction(0), Fraction(0)
        return self._prover.fair, self._prover.unfair

    def _estimate(self, fair: Fraction, unfair: Fraction) -> Interval:
        """Intersect the confidence sequence with what is proved."""
        one = self._draws
        interval = interval_of(one.people, one.unfair, one.unfair + one.undecided, alpha=self.alpha)
        low = max(interval.low, _rounded(unfair, -np.inf))
        high = min(interval.high, _rounded(1 - fair, np.inf))
        if low > high:  # the draws belong to the few runs that miss: what is proved counts
            low, high = _rounded(unfair, -np.inf), _rounded(1 - fair, np.inf)
        return replace(interval, low=low, high=high)

    def _draw(self, deadline: float, size: int) -> None:
        """Decide the next people of the sequence."""
        began = time.monotonic()
        number, first = divmod(self._draws.people, DRAWN)
        if self._drawn is None or self._drawn[0] != number:
            rng = np.random.default_rng([self._seed, number])
            self._drawn = number, self.population.draw(rng, DRAWN)
        people = self._drawn[1][first : first + size]
        left = deadline - began
        budget = Budget() if left == float("inf") else Budget(seconds=max(left, 0.05))
        found = treated(self.model, people, budget)
        one = self._draws
        self._draws = Draws(
            one.people + len(people),
            one.unfair + int(found.unfair.sum()),
            one.undecided + int(found.undecided.sum()),
        )
        if found.unfair.any():
            self._witness(people[int(np.argmax(found.unfair))])
        if sum(len(rows) for rows, _ in self._kept) < MOST_KEPT:
            known = ~found.undecided
            self._kept.append((people[known], found.unfair[known]))
        seconds = time.monotonic() - began
        self._draw_seconds += seconds
        if seconds < BLOCK_SECONDS / 2:
            self._size = min(2 * self._size, DRAWN)
        elif seconds > 2 * BLOCK_SECONDS:
            self._size = max(self._size // 2, 1)

    def _look(self, steps: int, deadline: float) -> None:
        """Look for somebody where unfairness is rare; whom this finds is no part of the estimate.

        A guided search follows the first neurons; then people are drawn from undecided boxes.
        """
        if self._pair is not None:
            return
        rng = np.random.default_rng([self._seed, self._draws.people, 1])
        if self._n_searches < MOST_SEARCHES:
            self._n_searches += 1
            deadline = min(deadline, time.monotonic() + BLOCK_SECONDS)
            self._examine(search(self.model, self.population, rng, deadline=deadline))
        if self._pair is None and self._prover is not None and steps:
            self._examine(self._prover.draw(rng, 256))

    def _examine(self, people: Matrix) -> None:
        found = treated(self.model, people)
        if found.unfair.any():
            self._witness(people[int(np.argmax(found.unfair))])

    def _witness(self, person: Vector) -> None:
        # The end of an interval of real numbers may not meet the condition itself.
        where = self.population.where
        if self._pair is None and where.holds(self.model.space, person[None, :])[0]:
            self._pair = counterexample(self.model, person)

    def _leaves(self) -> tuple[Region, ...]:
        if not self._kept:
            return ()
        people = np.concatenate([rows for rows, _ in self._kept])
        unfair = np.concatenate([flags for _, flags in self._kept])
        return regions_of(self.model.space, people, unfair, alpha=self.alpha)

    def _remember(self, progress: Callable[[Everybody], None]) -> None:
        seconds = time.monotonic() - self._started
        if self._history and seconds < self._history[-1].seconds + MOMENT_SECONDS:
            return
        fair, unfair = self._proved()
        now = self._estimate(fair, unfair)
        self._history.append(Moment(seconds, fair, unfair, now.low, now.high))
        progress(self._answer(()))  # a line of progress needs no regions


def refusal(model: Model) -> str:
    """Return why nothing can be proved about a model; empty if something can be."""
    if model.scorer.provenance == "counted":
        return "a counted model can only be sampled"
    if model.scorer.provenance != "proved":
        return "part of the model was read by sampling"
    return ""


def prover_of(
    model: Model, population: Population
) -> tuple[Listing | HalfSpaces | Boxes | None, str]:
    """Return what can prove shares of a population, or why nothing can.

    Half-spaces are for networks with a threshold; bounds over boxes decide other models.
    """
    listing = Listing.of(model, population)
    if not isinstance(listing, str):
        return listing, ""
    if model.rule.tolerance is not None:
        return None, f"{listing}, and boxes of people need decisions, not a tolerance"
    if not isinstance(population, Independent):
        return None, listing
    half_spaces = HalfSpaces.of(model, population)
    if not isinstance(half_spaces, str):
        return half_spaces, ""
    boxes = Boxes.of(model, population)
    if isinstance(boxes, str):
        return None, boxes
    return boxes, ""


def blind(model: Model) -> bool:
    """Return whether the score cannot depend on a sensitive column, by its structure alone."""
    space = model.space
    return not any(
        model.scorer.reads(attribute, space)
        for attribute in space.attributes
        if space.is_sensitive(attribute)
    )


def _rounded(share: Fraction, toward: float) -> float:
    """Return the float64 next to a share, on this side or equal."""
    number = float(share)
    off = Fraction(number) > share if toward < 0 else Fraction(number) < share
    return float(np.nextafter(number, toward)) if off else number
