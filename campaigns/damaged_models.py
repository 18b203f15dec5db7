"""Campaign of damaged Keras files: none may crash FETA, and a readable one must be read correctly.

    python -m campaigns.damaged_models [--files 2000] [--seed 0] [--commands 20]

Every damaged file is either refused with a message, for which the command line exits with 2, or
read as a network with finite scores. If arrays and description are unchanged, its scores are equal.
Files are opened by the same code as on the command line; each is parsed in a fork of one parsing
process, which is restarted when it ends. Some files are also opened by the command line.
"""

import argparse
import io
import logging
import os
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from campaigns.result import finish
from feta.errors import NetworkError
from feta.readers.keras import file as keras_file
from feta.readers.keras.hdf5 import Hdf5Content, Hdf5Program
from feta.readers.source import SourceOptions, open_source
from feta.scorer.network.network import Network

DAMAGES = ("flip", "cut off", "insert", "swap", "extreme", "overwrite", "delete")
WEIGHTS = "model.weights.h5"
PROCESSOR_SECONDS = 1  # a small file takes milliseconds; one in a hundred never ends
EXTREMES = (0, 1, 2**7, 2**8 - 1, 2**15, 2**16 - 1, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1)
SCHEMA = """[decision]
threshold = 0.5

[columns]
a = { type = "integer", min = 0, max = 3, sensitive = true }
"""


def good_files(folder: Path) -> list[Path]:
    """Save a chain of layers and a model with an embedding, each in both formats."""
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras  # noqa: PLC0415 - slow; its backend must be chosen first

    logging.getLogger("absl").setLevel(logging.ERROR)  # it warns that one format is old

    keras.utils.set_random_seed(0)
    layers: Any = keras.layers
    chain = keras.Sequential(
        [
            keras.Input((4,)),
            layers.Dense(6, activation="relu"),
            layers.BatchNormalization(),
            layers.Dense(5, use_bias=False),
            layers.LeakyReLU(negative_slope=0.125),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    numbers, kind = keras.Input((3,)), keras.Input((1,), dtype="int32")
    joined = layers.Concatenate()([numbers, layers.Flatten()(layers.Embedding(5, 2)(kind))])
    hidden = layers.Dense(6, activation="relu")(joined)
    blocks = keras.Model([numbers, kind], layers.Dense(2, activation="softmax")(hidden))
    paths = []
    for name, model in (("chain", chain), ("blocks", blocks)):
        for ending in ("keras", "h5"):
            paths.append(folder / f"{name}.{ending}")
            model.save(paths[-1])
    return paths


def damage(content: bytes, kind: str, rng: np.random.Generator) -> bytes:
    """Damage some bytes."""
    index = int(rng.integers(len(content)))
    length = int(rng.integers(1, 1 + min(256, len(content) - index)))
    before, after = content[:index], content[index + length :]
    match kind:
        case "flip":
            flipped = bytearray(content)
            for _ in range(int(rng.choice([1, 1, 2, 8, 64]))):
                flipped[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
            return bytes(flipped)
        case "cut off":
            return before
        case "insert":
            return before + rng.bytes(length) + content[index:]
        case "swap":
            return _swap_blocks(content, rng)
        case "extreme":
            return _write_extreme(content, rng)
        case "overwrite":
            return before + rng.bytes(length) + after
        case _:
            return before + after


def _swap_blocks(content: bytes, rng: np.random.Generator) -> bytes:
    """Swap two blocks of equal size."""
    size = int(rng.choice([8, 64, 512]))
    offsets = rng.choice(max(2, len(content) // size), 2, replace=False) * size
    first, second = map(int, sorted(offsets))
    first_block, second_block = content[first : first + size], content[second : second + size]
    return (
        content[:first]
        + second_block
        + content[first + size : second]
        + first_block
        + content[second + len(second_block) :]
    )


def _write_extreme(content: bytes, rng: np.random.Generator) -> bytes:
    """Set a field that is not 0, usually in a header, to an extreme number."""
    size, code = ((1, "<B"), (2, "<H"), (4, "<I"), (8, "<Q"))[int(rng.integers(4))]
    marks = [content.find(mark) for mark in (b"\x89HDF", b"TREE", b"HEAP", b"SNOD", b"OHDR", b"PK")]
    known = [mark for mark in marks if mark >= 0]
    start = int(rng.choice(known)) if known and rng.integers(4) else int(rng.integers(len(content)))
    offsets = [
        offset for offset in range(start, min(start + 512, len(content) - size)) if content[offset]
    ]
    offset = int(rng.choice(offsets)) if offsets else 0
    number = EXTREMES[int(rng.integers(len(EXTREMES)))] % 2 ** (8 * size)
    return content[:offset] + struct.pack(code, number) + content[offset + size :]


def damage_file(content: bytes, kind: str, rng: np.random.Generator) -> bytes:
    """Damage a file, or the weights in an archive that remains valid."""
    if not content.startswith(b"PK") or rng.integers(3) == 0:
        return damage(content, kind, rng)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members[WEIGHTS] = damage(members[WEIGHTS], kind, rng)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return packed.getvalue()


@dataclass
class Parser:
    """One parsing process for many files, restarted when it ends; keeps its last result."""

    program: Hdf5Program | None = None
    last: Hdf5Content | None = None

    def __call__(self, content: bytes, *, whole: bool) -> Hdf5Content:
        """Parse a file as `parse_hdf5` does."""
        self.last = None
        if self.program is None or not self.program.alive:
            self.program = Hdf5Program(processor_seconds=PROCESSOR_SECONDS)
        self.last = self.program.parse(content, whole=whole)
        return self.last


@dataclass
class GoodFile:
    """An undamaged file, its content, and the scores of its network."""

    path: Path
    content: bytes
    parsed: Hdf5Content
    description: bytes
    rows: np.ndarray[Any, np.dtype[np.float64]] = field(repr=False)
    scores: np.ndarray[Any, np.dtype[np.float64]] = field(repr=False)


def read_good(path: Path, parser: Parser) -> GoodFile:
    """Read an undamaged file."""
    network = _network(path)
    assert parser.last is not None
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20, network.width)) * rng.choice([1.0, 100.0], size=(20, 1))
    for table in network.first.tables:
        rows[:, table.column] = rng.choice(table.numbers, len(rows))
    content = path.read_bytes()
    return GoodFile(path, content, parser.last, _description(content), rows, network(rows))


def _network(path: Path) -> Network:
    network = open_source(path, SourceOptions()).network
    assert network is not None
    return network


def _description(content: bytes) -> bytes:
    """Return the description in an archive; empty for an .h5 file, which is parsed as a whole."""
    if not content.startswith(b"PK"):
        return b""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read("config.json") + archive.read("metadata.json")


def _same(good: GoodFile, content: bytes, parsed: Hdf5Content) -> bool:
    """Return whether a damaged file still has the same description and arrays."""
    if (parsed.config, parsed.version) != (good.parsed.config, good.parsed.version):
        return False
    groups = list(zip(parsed.groups, good.parsed.groups, strict=False))
    return (
        len(parsed.groups) == len(good.parsed.groups)
        and _description(content) == good.description
        and all((new.folder, new.name) == (old.folder, old.name) for new, old in groups)
        and all(_equal_arrays(new.arrays, old.arrays) for new, old in groups)
    )


def _equal_arrays(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    return len(first) == len(second) and all(map(np.array_equal, first, second))


def outcome_of(good: GoodFile, path: Path, parser: Parser) -> str:
    """Open a damaged file; return how that ended."""
    try:
        network = _network(path)
    except NetworkError as error:
        message = str(error)
        if not message.startswith(f"{path}: ") or len(message) < len(str(path)) + 20:
            return f"WRONG message: {message}"
        ends = {"crashed on it": "the library crashed", "takes longer": "the library did not end"}
        matches = [end for words, end in ends.items() if words in message]
        return f"refused: {matches[0]}" if matches else "refused with a message"
    except BaseException as error:  # such failures are what the campaign looks for
        return f"WRONG end: {type(error).__name__}: {error}"
    if network.width != good.rows.shape[1]:
        return "reads: another width"
    try:
        scores = network(good.rows)
    except NetworkError:  # an embedding that became shorter
        return "reads: another table"
    if not np.isfinite(scores).all():
        return "WRONG scores: not finite"
    assert parser.last is not None
    if not _same(good, path.read_bytes(), parser.last):
        return "reads: other numbers or another description"
    return "reads: the same" if np.array_equal(scores, good.scores) else "WRONG scores: different"


def open_by_command(path: Path, schema: Path) -> str:
    """Open a file by the command line, which must refuse it with a message."""
    program = Path(sys.executable).with_name("feta")
    arguments = [str(program), "doctor", str(path), "--schema", str(schema)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=300)
    begin = f"feta: {path}: "  # the message names the model file, not the schema
    messages = [line for line in done.stderr.splitlines() if line.startswith(begin)]
    if done.returncode != 2 or len(messages) != 1 or "Traceback" in done.stderr:
        return f"WRONG command: exit {done.returncode}: {done.stderr[-300:]}"
    return "command line: exit 2 with a message"


def main() -> int:
    """Run from the command line; exit 1 if anything went wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commands", type=int, default=20)
    options = parser.parse_args()
    started, counts = time.perf_counter(), Counter[str]()
    parsing = Parser()
    vars(keras_file)["parse_hdf5"] = parsing
    remaining = {
        "crashed": options.commands // 2,
        "refused": options.commands - options.commands // 2,
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "schema.toml").write_text(SCHEMA)
        goods = [read_good(path, parsing) for path in good_files(folder)]
        for number in range(options.files):
            good = goods[number % len(goods)]
            kind_of_damage = DAMAGES[number // len(goods) % len(DAMAGES)]
            rng = np.random.default_rng([options.seed, number])
            path = folder / f"damaged{good.path.suffix}"
            path.write_bytes(damage_file(good.content, kind_of_damage, rng))
            outcome = outcome_of(good, path, parsing)
            counts[f"{good.path.suffix}: {outcome}" if "WRONG" not in outcome else outcome] += 1
            kind = "crashed" if outcome.startswith("refused: ") else outcome.partition(" ")[0]
            if remaining.get(kind):
                remaining[kind] -= 1
                counts[open_by_command(path, folder / "schema.toml")] += 1
            if "WRONG" in outcome:
                print(
                    f"file {number} ({kind_of_damage} of {good.path.name}): {outcome}",
                    file=sys.stderr,
                )
    if parsing.program is not None:
        parsing.program.close()
    return finish(counts, started)


if __name__ == "__main__":
    sys.exit(main())
