"""The aggregate of a rule: the majority of the counterparts' decisions, or their median score."""

from feta.arrays import Matrix
from feta.engine.protocol import Budget
from feta.engine.registry import choose
from feta.model import Model
from feta.query import CountOf, SpreadOf
from feta.space.vote_weights import VoteWeights
from feta.verdict.aggregate import Aggregate


def aggregate(
    model: Model, people: Matrix, budget: Budget, *, engine: str, weights: VoteWeights | None
) -> Aggregate:
    """Ask an engine what the counterparts of each person get together."""
    if model.rule.tolerance is None:
        chosen = choose(CountOf(model), engine)
        return chosen.tally(model, people, budget, until="majority", weights=weights)
    return choose(SpreadOf(model), engine).spread(model, people, budget, weights=weights)
