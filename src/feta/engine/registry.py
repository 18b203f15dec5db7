"""Registry: our engines by name, and which one `auto` takes."""

from functools import cache
from importlib.metadata import entry_points

from feta.engine.exhaustive import Exhaustive
from feta.engine.protocol import Engine
from feta.errors import EngineError, one_of
from feta.model import Model


@cache
def engines() -> dict[str, Engine]:
    """Give all engines by name; others come by the entry point `feta.engines`, ours win a clash."""
    found: dict[str, Engine] = {
        point.name: point.load()() for point in entry_points(group="feta.engines")
    }
    return {**found, Exhaustive.name: Exhaustive()}


def choose(model: Model, name: str = "auto") -> Engine:
    """Take the engine named, or the first that accepts the model."""
    known = engines()
    if name == "auto":
        for engine in known.values():
            if engine.accepts(model):
                return engine
        raise EngineError(
            "no engine takes a real-valued sensitive attribute: declare it integer, or give a step"
        )
    if name not in known:
        raise EngineError(f"an engine must be {one_of(name, ['auto', *known])}")
    if not known[name].accepts(model):
        raise EngineError(
            f"the engine {name!r} cannot answer for this model: a sensitive attribute is real-valued; declare it integer, or give a step"
        )
    return known[name]
