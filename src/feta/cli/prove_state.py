"""The state file of `feta prove --resume`: how many people were drawn, and the question."""

import json
from dataclasses import asdict, fields
from pathlib import Path

from feta.errors import SchemaError
from feta.everybody.proving import DrawState
from feta.io.regular_file import atomic_write, path_problem

FORMAT = "feta-draws"

LARGEST = 10_000


def read_state(path: Path) -> DrawState | None:
    """Read a state; None if there is no file yet."""
    if not path.exists():
        return None
    problem = path_problem(path)
    if problem:
        raise SchemaError(f"{path}: {problem}")
    try:
        content = json.loads(path.read_bytes()[:LARGEST].decode("utf-8"))
    except ValueError:
        content = None
    names = {field.name: field.type for field in fields(DrawState)}
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise _damaged(path, "no state of draws")
    values = {name: content.get(name) for name in names}
    numbers = [value for name, value in values.items() if name != "question"]
    whole = all(type(number) is int and number >= 0 for number in numbers)
    if not isinstance(values["question"], str) or not whole:
        raise _damaged(path, "missing or invalid numbers")
    state = DrawState(**values)  # type: ignore[arg-type]  # checked above
    if state.unfair + state.undecided > state.people:
        raise _damaged(path, "more unfair people than people")
    return state


def write_state(path: Path, state: DrawState) -> None:
    """Write a state; it replaces an earlier one at once."""
    with atomic_write(path) as part:
        part.write_text(json.dumps({"format": FORMAT, **asdict(state)}, indent=1) + "\n")


def _damaged(path: Path, problem: str) -> SchemaError:
    return SchemaError(
        f"invalid state file {path}: got {problem}; expected a file that feta prove --resume "
        "wrote; name another file, or delete this one"
    )
