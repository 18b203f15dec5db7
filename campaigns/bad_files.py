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
from multiprocessing import Pool
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
HOWS = ("flip", "delete", "insert", "duplicate", "number", "structure")
SECONDS = 300  # a longer run hangs: the slowest takes about one second on an idle machine
BLOCK = 50  # mutations per task


def restructured(content: bytes, rng: np.random.Generator) -> bytes:
    """Change operators, names and shapes of a graph; the file remains valid protobuf."""
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


def redescribed(content: bytes, rng: np.random.Generator) -> bytes:
    """Change one value in a saved model's description."""
    length = int.from_bytes(content[:8], "little")
    description = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][FORMAT])
    index: Any = description
    while True:
        keys = list(index) if isinstance(index, dict) else list(range(len(index)))
        key = keys[int(rng.integers(len(keys)))]
        if not isinstance(index[key], dict | list) or not index[key] or rng.integers(5) == 0:
            break
        index = index[key]
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
    index[key] = extremes[int(rng.integers(len(extremes)))]
    return bytes(save(dict(load(content)), {FORMAT: json.dumps(description)}))


def mutated(name: str, content: bytes, how: str, rng: np.random.Generator) -> bytes:
    """Change some bytes of a file, or its content."""
    if how == "structure" and name.startswith("model."):
        return (restructured if name.endswith(".onnx") else redescribed)(content, rng)
    index = int(rng.integers(len(content)))
    length = int(rng.integers(1, 1 + min(64, len(content) - index)))
    before, chunk, after = (
        content[:index],
        content[index : index + length],
        content[index + length :],
    )
    match how:
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


def _alarm(_signal: int, _frame: FrameType | None) -> None:
    raise _TooLong


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    signal.signal(signal.SIGALRM, _alarm)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)


def ended(arguments: list[str]) -> tuple[int | str, str]:
    """Run a command in this process; return its exit code or failure, and its messages."""
    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["feta", *arguments]
    code: int | str = "no exit"
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            with _limited():
                run_command.main()
        except SystemExit as stopped:
            code = int(stopped.code or 0)
        except _TooLong:
            code = "hangs"
        except BaseException as error:  # the campaign looks for these
            code = f"{type(error).__name__}: {error}"
    return code, err.getvalue()


def wrong(code: int | str, messages: str) -> str:
    """Return what is wrong with the end of a run, or an empty text."""
    if code not in (0, 1, 2, 3):
        return f"ended in {code}"
    if "Traceback" in messages:
        return "showed a traceback"
    lines = [line for line in messages.splitlines() if line.startswith("feta: ")]
    if len(lines) != (code == 2):
        return f"ended in {code} with {len(lines)} messages"
    return ""


def run_kinds() -> Counter[str]:
    """Check every kind of invalid file."""
    counts: Counter[str] = Counter()
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as path:
            folder = Folder.filled(Path(path) / "files")
            code, messages = ended(kind.make(folder))
            problem = wrong(code, messages) or ("" if code == 2 else f"ended in {code}")
            if not problem and not all(part in messages for part in kind.says):
                problem = "said something else"
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
            name, how = FILES[number % len(FILES)], HOWS[number // len(FILES) % len(HOWS)]
            content = mutated(name, good[name], how, np.random.default_rng([seed, number]))
            (folder.path / name).write_bytes(content)
            used = "model.feta" if name == "model.feta" else "model.onnx"
            code, messages = ended(folder.audit("--seconds", "0.05", model=used))
            (folder.path / name).write_bytes(good[name])
            counts[f"{name}: ended in {code}"] += 1
            if problem := wrong(code, messages):
                counts["WRONG mutation"] += 1
                kept = Path(tempfile.gettempdir()) / f"feta-bad-{seed}-{number}-{name}"
                kept.write_bytes(content)
                print(
                    f"mutation {number} ({how}) of {name}: {problem}: {messages[-500:]} {kept}",
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
    with Pool(min(2, os.cpu_count() or 1)) as pool:
        for found in pool.imap_unordered(run_mutations, tasks):
            counts += found
    bad = sum(count for name, count in counts.items() if name.startswith("WRONG"))
    for name, count in sorted(counts.items()):
        print(f"{name}: {count}")
    seconds = time.perf_counter() - started
    print(f"{bad} wrong in {options.mutations} mutations and {len(KINDS)} kinds, {seconds:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
