"""Votes by means in the form of the kernel, each created once per model and vote."""

from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from feta.arrays import Counts, Matrix
from feta.engine.counterparts import assignments
from feta.engine.means import MeanSums
from feta.model import Model
from feta.scorer.kernel import KernelVote
from feta.space.vote_weights import VoteWeights
from feta.vote.mean_decision import MeanDecision

# Counterparts that the kernel lists at a time; without weights, all of them.
MAX_LISTED = 2**24


# Votes that are cached for people with different counterparts.
MAX_CACHED = 256


@dataclass(frozen=True, slots=True, eq=False)
class _Prepared:
    """The votes of one mean decision, and the model and weights it belongs to."""

    model: Model
    weights: VoteWeights | None
    by_list: dict[int, tuple[Counts | None, KernelVote | None]] = field(default_factory=dict)


class KernelVotes:
    """The votes of predictors; a predictor has one mean decision."""

    def __init__(self) -> None:
        self._prepared: WeakKeyDictionary[MeanDecision, _Prepared] = WeakKeyDictionary()

    def of(
        self, model: Model, mean: MeanDecision, weights: VoteWeights | None, people: Matrix
    ) -> KernelVote | None:
        """Return the vote of people with equal assignments; None if the kernel does not apply."""
        known = self._prepared.get(mean)
        if known is None or known.model is not model or known.weights is not weights:
            known = self._prepared[mean] = _Prepared(model, weights)
        relation = model.relation
        ids = None if relation.complete else relation.assignment_ids(people[0])
        # The list itself is stored, so that its id is not given to another one.
        cached = known.by_list.get(id(ids))
        if cached is None or cached[0] is not ids:
            if len(known.by_list) >= MAX_CACHED:
                known.by_list.clear()
            cached = ids, _kernel_vote(model, mean, weights, people[:1])
            known.by_list[id(ids)] = cached
        return cached[1]


def _kernel_vote(
    model: Model, mean: MeanDecision, weights: VoteWeights | None, person: Matrix
) -> KernelVote | None:
    steps, cutoff = mean.vote.steps, mean.cutoff
    if steps is None or cutoff is None or model.scorer.outputs != 1:
        return None
    voters = assignments(model, person, weights)
    if not 0 < voters.size <= MAX_LISTED:
        return None
    ids, votes = voters.block(0, voters.size)
    scale = MeanSums(model, mean.vote, weights).scale(person)
    above = cutoff.favors == "above"
    return KernelVote(ids, votes, *steps, above=above, edge=cutoff.edge(scale))
