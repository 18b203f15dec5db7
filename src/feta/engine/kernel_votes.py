"""Votes by means in the form of the kernel, each created once per model and vote."""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from feta.engine.means import MeanSums
from feta.model import Model
from feta.scorer.kernel import KernelVote
from feta.space.vote_weights import VoteWeights
from feta.vote.mean_decision import MeanDecision

# Counterparts that the kernel lists at a time; without weights, all of them.
MAX_LISTED = 2**24


@dataclass(frozen=True, slots=True, eq=False)
class _Prepared:
    """A vote, and the model and weights it belongs to."""

    model: Model
    weights: VoteWeights | None
    vote: KernelVote | None


class KernelVotes:
    """The votes of predictors; a predictor has one mean decision."""

    def __init__(self) -> None:
        self._prepared: WeakKeyDictionary[MeanDecision, _Prepared] = WeakKeyDictionary()

    def of(
        self, model: Model, mean: MeanDecision, weights: VoteWeights | None
    ) -> KernelVote | None:
        """Return the vote; None if the kernel does not apply."""
        known = self._prepared.get(mean)
        if known is None or known.model is not model or known.weights is not weights:
            known = _Prepared(model, weights, _kernel_vote(model, mean, weights))
            self._prepared[mean] = known
        return known.vote


def _kernel_vote(
    model: Model, mean: MeanDecision, weights: VoteWeights | None
) -> KernelVote | None:
    steps, cutoff = mean.vote.steps, mean.cutoff
    if steps is None or cutoff is None or model.scorer.outputs != 1:
        return None
    n_listed = model.relation.size if weights is None else len(weights.assignment_ids)
    if n_listed > MAX_LISTED:
        return None
    if weights is not None:
        weights.check(model.space)
        ids, votes = weights.assignment_ids, weights.votes
    else:
        ids, votes = np.arange(n_listed), np.ones(n_listed, dtype=np.int64)
    scale = MeanSums(model, mean.vote, weights).scale(np.zeros((1, model.space.width)))
    above = cutoff.favors == "above"
    return KernelVote(ids, votes, *steps, above=above, edge=cutoff.edge(scale))
