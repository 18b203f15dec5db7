"""The aggregate of counterparts: the majority of decisions, a mean, or the median score."""

from feta.arrays import Matrix
from feta.engine.protocol import Budget
from feta.engine.registry import choose
from feta.model import Model
from feta.query import CountOf, MeanOf, SpreadOf
from feta.space.vote_weights import VoteWeights
from feta.verdict.aggregate import Aggregate
from feta.vote.mean_decision import MeanDecision


def aggregate(
    model: Model,
    people: Matrix,
    budget: Budget,
    *,
    engine: str,
    weights: VoteWeights | None,
    mean: MeanDecision | None = None,
) -> Aggregate:
    """Ask an engine what the counterparts of each person get together."""
    if mean is not None:
        return choose(MeanOf(model), engine).means(
            model, people, budget, mean=mean, weights=weights
        )
    if model.rule.tolerance is None:
        chosen = choose(CountOf(model), engine)
        return chosen.tally(model, people, budget, until="majority", weights=weights)
    return choose(SpreadOf(model), engine).spread(model, people, budget, weights=weights)
