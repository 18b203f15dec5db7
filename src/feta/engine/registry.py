"""Registry: our engines by name, and which one `auto` takes."""

from functools import cache
from importlib.metadata import entry_points

from feta.bounds.first_layer import MAX_ROWS, tabulable
from feta.engine.exhaustive import ExhaustiveEngine
from feta.engine.lattice import LatticeEngine
from feta.engine.milp.backends.gurobi import Gurobi
from feta.engine.milp.backends.highs import Highs
from feta.engine.milp.backends.scip import Scip
from feta.engine.milp.engine import MilpEngine
from feta.engine.protocol import Engine
from feta.errors import EngineError, one_of
from feta.model import Model
from feta.scorer.network import native_kernel

# In the order in which `auto` asks them.
OURS: tuple[Engine, ...] = (
    LatticeEngine(),
    ExhaustiveEngine(),
    MilpEngine("milp", Highs()),
    MilpEngine("milp:scip", Scip()),
    MilpEngine("milp:gurobi", Gurobi()),
)

# Beyond this many counterparts `auto` does not score them one by one: it would take minutes a person.
SMALL = 10**8


@cache
def engines() -> dict[str, Engine]:
    """Give all engines by name; others come by the entry point `feta.engines`, ours win a clash."""
    found: dict[str, Engine] = {
        point.name: point.load()() for point in entry_points(group="feta.engines")
    }
    ours = {engine.name: engine for engine in OURS}
    return ours | {name: engine for name, engine in found.items() if name not in ours}


def is_ours(engine: Engine) -> bool:
    """Say whether an engine's proofs are taken at its word."""
    return engine in OURS


def choose(model: Model, name: str = "auto") -> Engine:
    """Take the engine named, or the first that accepts the model."""
    known = engines()
    if name == "auto":
        if not LatticeEngine.available():
            native_kernel.warn_without_kernel()
        for engine in known.values():
            if engine.accepts(model) and (engine.name != ExhaustiveEngine.name or _is_small(model)):
                return engine
        raise EngineError(f"no engine can answer for this model: {_why_not(model)}")
    if name not in known:
        raise EngineError(f"an engine must be {one_of(name, ['auto', *known])}")
    if name == LatticeEngine.name and not LatticeEngine.available():
        raise EngineError(f"the engine {name!r} cannot answer: {native_kernel.MISSING}")
    if not known[name].accepts(model):
        raise EngineError(f"the engine {name!r} cannot answer for this model: {_why_not(model)}")
    return known[name]


def _is_small(model: Model) -> bool:
    return model.space.lattice.size <= SMALL


def _why_not(model: Model) -> str:
    if not tabulable(model):
        return f"a sensitive attribute with a table or bands must be finite and have at most {MAX_ROWS} values; narrow its domain"
    if not model.space.finite:
        return "a sensitive attribute is real-valued; declare it integer, or give a step, or use the engine 'milp'"
    return f"everybody has over 2^{model.space.lattice.size.bit_length() - 1} counterparts; narrow the sensitive domains"
