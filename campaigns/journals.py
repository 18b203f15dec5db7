"""Campaign of damaged journals: a resumed audit writes the files of an undisturbed one.

    python -m campaigns.journals [--mutants 1000] [--people 60] [--seed 0] [--processes 10]

A real audit is killed (its journal has a write-ahead log) or interrupted (its journal is one file).
Mutants change bytes anywhere in either file: bits, bytes, runs of bytes, cuts, exchanged blocks,
and the texts "fair" and "unfair". The audit is then resumed in this process, for some mutants by
the command line in a separate process. The exit code, all verdicts and pairs, and the summary are
compared.
"""

import argparse
import contextlib
import io
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

import feta
from campaigns.result import finish
from campaigns.stopping import stopped_after
from feta.cli import run_command

Contents = dict[str, bytes]
MAIN, LOG = "journal.sqlite", "journal.sqlite-wal"


def prepare(folder: Path, people: int) -> list[str]:
    """Write a model and a table; return the command without --out."""
    space = feta.FeatureSpace(
        (
            feta.Integer("age", 18, 60, sensitive=True),
            feta.Categorical("sex", ("f", "m"), sensitive=True),
            feta.Real("income", 0, 100),
        )
    )
    rng = np.random.default_rng(3)
    layers = [(rng.normal(size=(4, 4)), rng.normal(size=4)), (rng.normal(size=(1, 4)), np.zeros(1))]
    model = feta.Model(space, feta.Network.from_layers(layers, activation="relu"), threshold=2.0)
    feta.save_model(model, folder / "model.feta")
    rows = [f"p{n},{18 + n % 43},{'fm'[n % 2]},{100 * n / people}" for n in range(people)]
    (folder / "people.csv").write_text("\n".join(["id,age,sex,income", *rows]), encoding="utf-8")
    files = [str(folder / "model.feta"), "--data", str(folder / "people.csv"), "--id", "id"]
    return ["audit", *files, "--out"]


def journals(command: list[str], folder: Path, rows: int) -> list[Contents]:
    """Return the journals of an interrupted and of a killed audit."""
    with stopped_after(rows):
        code, _ = run([*command, str(folder / "interrupted")])
    assert code == 130
    killed: Contents = {}

    def as_killed() -> None:
        killed.update({name: (folder / "killed" / name).read_bytes() for name in (MAIN, LOG)})

    with stopped_after(rows, as_killed):
        run([*command, str(folder / "killed")])
    return [{MAIN: (folder / "interrupted" / MAIN).read_bytes()}, killed]


def run(arguments: list[str]) -> tuple[int, str]:
    """Run the command line in this process; return its exit code and messages."""
    messages = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(messages):
        return run_command.run_command(arguments), messages.getvalue()


def mutate(contents: Contents, dice: random.Random) -> tuple[str, Contents]:
    """Damage one of the files."""
    name = dice.choice([file for file in sorted(contents) if contents[file]])
    data = bytearray(contents[name])
    index, length = dice.randrange(len(data)), dice.randint(1, 64)
    kind = dice.choice(("bit", "byte", "used byte", "run", "cut", "removed", "exchanged", "word"))
    if kind == "bit":
        data[index] ^= 1 << dice.randrange(8)
    elif kind == "byte":
        data[index] = dice.randrange(256)
    elif kind == "used byte":
        nonzero = [offset for offset, byte in enumerate(data) if byte]
        data[dice.choice(nonzero)] = dice.choice((0, 1, 0x7F, 0xFF, dice.randrange(256)))
    elif kind == "run":
        data[index : index + length] = dice.randbytes(len(data[index : index + length]))
    elif kind == "cut":
        del data[index:]
    elif kind == "removed":
        del data[index : index + length]
    elif kind == "exchanged":
        size = dice.choice((32, 512, 4096))
        other = dice.randrange(len(data))
        first, second = data[index : index + size], data[other : other + size]
        data[index : index + len(second)], data[other : other + len(first)] = second, first
    else:
        old, new = dice.choice(((b'"unfair"', b'"fair"  '), (b'"fair"', b'"f4ir"')))
        offsets = [offset for offset in range(len(data)) if data.startswith(old, offset)]
        if offsets:
            offset = dice.choice(offsets)
            data[offset : offset + len(old)] = new
    return kind, contents | {name: bytes(data)}


def answers(out: Path) -> dict[str, object]:
    """Read the files that must be equal."""
    content = json.loads((out / "audit.json").read_text(encoding="utf-8"))
    tables = {name: (out / name).read_bytes() for name in ("verdicts.csv", "pairs.csv")}
    return {**tables, "summary": content["summary"], "partial": content["partial"]}


def main() -> int:
    """Run from the command line; exit 1 if any resumed audit differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutants", type=int, default=1000)
    parser.add_argument("--people", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=10)
    options = parser.parse_args()
    dice, started = random.Random(options.seed), time.perf_counter()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = prepare(folder, options.people)
        code, _ = run([*command, str(folder / "undisturbed")])
        expected = (code, answers(folder / "undisturbed"))
        assert expected[0] == 1
        real = journals(command, folder, rows=options.people * 4 // 5)
        for number in range(options.mutants):
            kind, mutant = mutate(real[number % 2], dice)
            out = folder / f"out-{number}"
            out.mkdir()
            for file, data in mutant.items():
                (out / file).write_bytes(data)
            arguments = [*command, str(out)]
            processes = [n * options.processes // options.mutants for n in (number, number + 1)]
            if processes[0] != processes[1]:
                process = [sys.executable, "-m", "feta", *arguments]
                done = subprocess.run(process, capture_output=True, text=True, check=False)
                code, messages = done.returncode, done.stderr
                counts["resumed in a process"] += 1
            else:
                code, messages = run(arguments)
            counts[f"mutants: {kind}"] += 1
            counts["set aside"] += "the journal was damaged" in messages
            counts["resumed"] += "resuming with" in messages
            if code != expected[0]:
                counts[f"WRONG exit {code}: {messages[-200:]}"] += 1
            else:
                counts[f"WRONG answers: {kind}"] += answers(out) != expected[1]
            shutil.rmtree(out)
    return finish(+counts, started)


if __name__ == "__main__":
    sys.exit(main())
