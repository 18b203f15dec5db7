"""Engines by name, and the choice that `auto` makes."""

from functools import cache
from importlib.metadata import entry_points

from feta.bounds.first_layer import MAX_ROWS
from feta.engine.exhaustive import ExhaustiveEngine
from feta.engine.lattice import LatticeEngine
from feta.engine.milp.backends.gurobi import Gurobi
from feta.engine.milp.backends.highs import Highs
from feta.engine.milp.backends.scip import Scip
from feta.engine.milp.engine import MilpEngine
from feta.engine.protocol import Engine
from feta.engine.sections import finite_size
from feta.errors import EngineError, unknown_choice
from feta.model import Model
from feta.query import Query
from feta.scorer.native import MISSING, is_built, warn_without_kernel

# In the order in which `auto` tries them.
OURS: tuple[Engine, ...] = (
    LatticeEngine(),
    ExhaustiveEngine(),
    MilpEngine("milp", Highs()),
    MilpEngine("milp:scip", Scip()),
    MilpEngine("milp:gurobi", Gurobi()),
)

# `auto` does not enumerate more counterparts than this: it would take minutes per person.
MAX_ENUMERATED = 10**8


@cache
def engines() -> dict[str, Engine]:
    """Return all engines by name; plugins use the entry point `feta.engines`.

    A plugin cannot replace an engine of FETA.
    """
    plugins: dict[str, Engine] = {
        point.name: point.load()() for point in entry_points(group="feta.engines")
    }
    ours = {engine.name: engine for engine in OURS}
    return ours | {name: engine for name, engine in plugins.items() if name not in ours}


def is_ours(engine: Engine) -> bool:
    """Return whether an engine is part of FETA, so that its proofs are trusted."""
    return engine in OURS


def choose(query: Query, name: str = "auto") -> Engine:
    """Return the named engine, or the first that accepts the query."""
    known = engines()
    if name == "auto":
        if not is_built():
            warn_without_kernel()
        return _first_accepting(query)
    if name not in known:
        raise EngineError(f"unknown engine: {unknown_choice(name, ['auto', *known])}")
    if name == LatticeEngine.name and not is_built():
        raise EngineError(f"the engine {name!r} is not available: {MISSING}")
    if not known[name].accepts(query):
        raise EngineError(
            f"the engine {name!r} does not accept this model: {_why_not(query.model)}"
        )
    return known[name]


def _first_accepting(query: Query) -> Engine:
    for engine in engines().values():
        if engine.accepts(query) and (engine.name != ExhaustiveEngine.name or _is_small(query)):
            return engine
    raise EngineError(f"no engine accepts this model: {_why_not(query.model)}")


def _is_small(query: Query) -> bool:
    size = finite_size(query.model)
    return size is not None and size <= MAX_ENUMERATED


def _why_not(model: Model) -> str:
    """Return what is wrong with the model, what is expected, and what to do."""
    relation = model.relation
    if not relation.has_key:
        return (
            "got a relation in which counterparts of counterparts may be none, so they are not "
            "counted; expected a question about one person; use verify, worst or "
            "feta.share_unfair"
        )
    large = not relation.finite or relation.size > MAX_ENUMERATED
    if not relation.finite and model.scorer.provenance == "counted":
        return (
            "got a counted model with a real-valued sensitive attribute, whose values cannot all "
            "be evaluated; expected finite ones; declare it integer, or give a step"
        )
    if large and not model.restricted.bounds_cells:
        return (
            "got a sensitive attribute with a table or bands that is real-valued or too long; "
            f"expected a finite one with at most {MAX_ROWS} values; narrow its domain"
        )
    if not relation.finite:
        return (
            "got a real-valued sensitive attribute; expected finite ones; "
            "declare it integer, or give a step, or use the engine 'milp'"
        )
    if not large:
        return (
            "got a scorer or a relation whose counterparts can only be enumerated, or values that "
            "are too large for the engine; expected bounds over boxes of counterparts; use the "
            "engine 'exhaustive'"
        )
    size = relation.size.bit_length() - 1
    return (
        f"got over 2^{size} counterparts per person; expected fewer; narrow the sensitive domains"
    )
