"""Campaign of invalid files of every kind, and of valid files with random changes.

    python -m campaigns.bad_files [--mutations 2000] [--seed 0]

Every run must exit with 0, 1, 2 or 3, in time, with at most one message and no traceback. A file of
a listed invalid kind must exit with 2 and the expected message.
"""

import argparse
import contextlib
import io
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import onnx
from safetensors.numpy import load, save

import feta
from feta.cli import run_command
from feta.io.model_file import FORMAT
from feta.readers.onnx.operators import OPERATORS
from tests.bad_files import KINDS, Folder
from tests.extras import missing_by

FILES = ("model.onnx", "model.feta", "data.csv", "schema.toml")
MUTATIONS = ("flip", "delete", "insert", "duplicate", "number", "structure")
MAX_SECONDS = 300  # a longer run hangs: the slowest takes about one second on an idle machine
BLOCK = 50  # mutations per task


def mutate_graph(content: bytes, rng: np.random.Generator) -> bytes:
    """Change operators, names or shapes of a graph; the file remains valid protobuf."""
    model = onnx.load_model_from_string(content)
    nodes, arrays = model.graph.node, model.graph.initializer
    node, other = (nodes[int(rng.integers(len(nodes)))] for _ in range(2))
    array = arrays[int(rng.integers(len(arrays)))]
    match int(rng.integers(9)):
        case 0:
            nodes.remove(node)
        case 1:
            nodes.append(node)
        case 2:
            node.op_type = str(rng.choice(sorted(OPERATORS)))
        case 3:
            node.input.reverse()
        case 4:
            del node.input[int(rng.integers(len(node.input))) :]
        case 5:
            node.output[:] = other.input[:1] if rng.integers(2) else []
        case 6:
            array.dims[:] = rng.integers(-1, 5, int(rng.integers(4))).tolist()
        case 7:
            array.data_type = int(rng.integers(24))
        case _:
            name = str(rng.choice(["alpha", "transA", "transB", "axis", "to", "epsilon"]))
            node.attribute.append(onnx.helper.make_attribute(name, int(rng.integers(-2, 12))))
    return model.SerializeToString()


def mutate_description(content: bytes, rng: np.random.Generator) -> bytes:
    """Change one value in a saved model's description."""
    length = int.from_bytes(content[:8], "little")
    description = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][FORMAT])
    container: Any = description
    while True:
        keys = list(container) if isinstance(container, dict) else list(range(len(container)))
        key = keys[int(rng.integers(len(keys)))]
        if (
            not isinstance(container[key], dict | list)
            or not container[key]
            or rng.integers(5) == 0
        ):
            break
        container = container[key]
    extremes: list[object] = [
        None,
        [],
        {},
        "",
        "x",
        -1,
        0.5,
        10**30,
        10**400,
        float("nan"),
        True,
        [[[]]],
        "\x1b",
    ]
    container[key] = extremes[int(rng.integers(len(extremes)))]
    return bytes(save(dict(load(content)), {FORMAT: json.dumps(description)}))


def mutate(name: str, content: bytes, mutation: str, rng: np.random.Generator) -> bytes:
    """Change some bytes of a file, or its content."""
    if mutation == "structure" and name.startswith("model."):
        return (mutate_graph if name.endswith(".onnx") else mutate_description)(content, rng)
    index = int(rng.integers(len(content)))
    length = int(rng.integers(1, 1 + min(64, len(content) - index)))
    before, chunk, after = (
        content[:index],
        content[index : index + length],
        content[index + length :],
    )
    match mutation:
        case "flip":
            flipped = bytearray(content)
            for _ in range(int(rng.integers(1, 5))):
                flipped[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
            return bytes(flipped)
        case "delete":
            return before + after
        case "insert":
            return before + rng.bytes(length) + chunk + after
        case "duplicate":
            return before + chunk * int(rng.integers(2, 5)) + after
        case _:  # a digit becomes an extreme number
            digits = [at for at, byte in enumerate(content) if chr(byte).isdigit()] or [index]
            at = digits[int(rng.integers(len(digits)))]
            extremes = (
                b"nan",
                b"-1",
                b"1e400",
                b"9" * 25,
                b"0.5",
                b"inf",
                b"-0",
                b"",
                b"[]",
                b"{}",
            )
            return content[:at] + extremes[int(rng.integers(len(extremes)))] + content[at + 1 :]


class _TooLong(BaseException):
    pass


def _raise_too_long(_signal: int, _frame: FrameType | None) -> None:
    raise _TooLong


@contextlib.contextmanager
def _time_limit() -> Iterator[None]:
    signal.signal(signal.SIGALRM, _raise_too_long)
    signal.alarm(MAX_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)


def run_feta(arguments: list[str]) -> tuple[int | str, str]:
    """Run a command in this process; return its exit code or failure, and its messages."""
    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["feta", *arguments]
    code: int | str = "no exit"
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            with _time_limit():
                run_command.main()
        except SystemExit as exit_:
            code = int(exit_.code or 0)
        except _TooLong:
            code = "hangs"
        except BaseException as error:  # such failures are what the campaign looks for
            code = f"{type(error).__name__}: {error}"
    return code, err.getvalue()


def problem_of(code: int | str, messages: str) -> str:
    """Return what is wrong with the end of a run, or an empty text."""
    if code not in (0, 1, 2, 3):
        return f"ended with {code}"
    if "Traceback" in messages:
        return "showed a traceback"
    lines = [line for line in messages.splitlines() if line.startswith("feta: ")]
    if len(lines) != (code == 2):
        return f"ended with {code} and {len(lines)} messages"
    return ""


def run_kinds() -> Counter[str]:
    """Check every kind of invalid file."""
    counts: Counter[str] = Counter()
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as path:
            folder = Folder.filled(Path(path) / "files")
            code, messages = run_feta(kind.make(folder))
            problem = problem_of(code, messages) or ("" if code == 2 else f"ended with {code}")
            if not problem and not all(part in messages for part in kind.says):
                problem = "gave another message"
            if (folder.path / "canary").exists():
                problem = "was executed"
        if problem and (package := missing_by(messages)) is not None:
            counts[f"kinds of bad files skipped: {package} is not installed"] += 1
            continue
        counts["kinds of bad files"] += 1
        if problem:
            counts["WRONG kind"] += 1
            print(f"{kind.name}: {problem}: {messages[-500:]}", file=sys.stderr)
    return counts


def run_mutations(task: tuple[int, int, int]) -> Counter[str]:
    """Check the mutations from `start` to `stop`."""
    seed, start, stop = task
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as path:
        folder = Folder.filled(Path(path) / "files")
        model = feta.read_schema(folder.path / "schema.toml").model(
            feta.read_onnx(folder.path / "model.onnx")
        )
        feta.save_model(model, folder.path / "model.feta")
        good = {name: (folder.path / name).read_bytes() for name in FILES}
        for number in range(start, stop):
            name = FILES[number % len(FILES)]
            mutation = MUTATIONS[number // len(FILES) % len(MUTATIONS)]
            content = mutate(name, good[name], mutation, np.random.default_rng([seed, number]))
            (folder.path / name).write_bytes(content)
            model_name = "model.feta" if name == "model.feta" else "model.onnx"
            code, messages = run_feta(folder.audit("--seconds", "0.05", model=model_name))
            (folder.path / name).write_bytes(good[name])
            counts[f"{name}: ended with {code}"] += 1
            if problem := problem_of(code, messages):
                counts["WRONG mutation"] += 1
                saved = Path(tempfile.gettempdir()) / f"feta-bad-{seed}-{number}-{name}"
                saved.write_bytes(content)
                print(
                    f"mutation {number} ({mutation}) of {name}: {problem}: "
                    f"{messages[-500:]} {saved}",
                    file=sys.stderr,
                )
    return counts


def main() -> int:
    """Run from the command line; exit 1 if anything went wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mutations", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started = time.perf_counter()
    counts = run_kinds()
    starts = range(0, options.mutations, BLOCK)
    tasks = [(options.seed, n, min(n + BLOCK, options.mutations)) for n in starts]
    # A command ignores SIGTERM when it ends, so workers must not be ended by that signal.
    with ProcessPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        for block_counts in pool.map(run_mutations, tasks):
            counts += block_counts
    n_wrong = sum(count for name, count in counts.items() if name.startswith("WRONG"))
    for name, count in sorted(counts.items()):
        print(f"{name}: {count}")
    seconds = time.perf_counter() - started
    print(
        f"{n_wrong} wrong in {options.mutations} mutations and {len(KINDS)} kinds, {seconds:.0f} s"
    )
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
