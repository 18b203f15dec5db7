"""Campaign of the first steps: README and tutorial, run literally in a new environment.

    python -m campaigns.first_steps [--wheel FILE] [--demo-seconds 120] [--tutorial-seconds 600]

It makes an empty virtual environment without extras. It installs FETA from this folder, or from a
wheel without a compiler in PATH. Then it knows only the documents: it runs the commands of README's
first screen and all blocks of the tutorial, in order and unchanged, in an empty folder. A block of
Python runs after those before it, in a new process. It fails if a command fails or takes too long.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections import Counter
from pathlib import Path

from campaigns.result import finish

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"```(python|sh)\n(.*?)```", re.DOTALL)

# `feta audit` exits with 1 if it finds a counterexample, as the README says.
FINE = (0, 1)

# Programs that compile: none of them may be found when a wheel is installed.
COMPILERS = ("c++", "cc", "clang", "clang++", "cmake", "g++", "gcc", "ninja")


def install(folder: Path, wheel: Path | None) -> Path:
    """Make an environment, install FETA, and return the folder with its commands."""
    venv.create(folder / "venv", with_pip=True)
    commands = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    source = str(ROOT if wheel is None else wheel.resolve())
    environment = dict(os.environ)
    if wheel is not None:
        environment["PATH"] = without_compilers(folder, commands)
        assert not any(shutil.which(name, path=environment["PATH"]) for name in COMPILERS)
    constraints = ["-c", str(ROOT / "constraints.txt")]
    subprocess.run(
        [commands / "python", "-m", "pip", "install", "--quiet", *constraints, source],
        check=True,
        env=environment,
    )
    return commands


def without_compilers(folder: Path, commands: Path) -> str:
    """Return a PATH that has the environment's commands and nothing that compiles."""
    empty = folder / "bin"
    empty.mkdir()
    return os.pathsep.join(map(str, (commands, empty)))


def blocks(document: str) -> list[tuple[str, str]]:
    """Return the blocks of a document: for the README, those of its first screen."""
    text = (ROOT / document).read_text(encoding="utf-8")
    if document == "README.md":
        text = text.partition("\n## ")[0]
    return BLOCK.findall(text)


def run(kind: str, block: str, number: int, folder: Path, commands: Path) -> list[str]:
    """Run a block; return the lines that failed."""
    environment = os.environ | {
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
    }
    environment.pop("PYTHONPATH", None)
    if kind == "sh":
        lines = block.strip().splitlines()
        return [line for line in lines if code_of(line, folder, environment) not in FINE]
    # The blocks of Python continue each other, as in one session.
    session = folder / "session.py"
    before = session.read_text(encoding="utf-8") if session.exists() else ""
    session.write_text(before + block, encoding="utf-8")
    script = folder / f"block{number}.py"
    script.write_text(before + block, encoding="utf-8")
    command = f'"{commands / "python"}" "{script}"'
    return [] if code_of(command, folder, environment) == 0 else [block]


def code_of(command: str, folder: Path, environment: dict[str, str]) -> int:
    """Run a command in a shell; show what it wrote if it failed."""
    started = time.perf_counter()
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - started
    print(f"  {seconds:6.1f} s  exit code {done.returncode}  {command[-90:]}", flush=True)
    if done.returncode not in FINE:
        print(done.stdout[-2000:], done.stderr[-2000:])
    return done.returncode


def walk(document: str, folder: Path, commands: Path, limit: float) -> Counter[str]:
    """Run all blocks of a document in a new folder; return what went wrong."""
    folder.mkdir()
    print(document)
    started = time.perf_counter()
    counts: Counter[str] = Counter()
    for number, (kind, block) in enumerate(blocks(document)):
        counts[f"{document}: blocks"] += 1
        counts["WRONG: failed commands"] += len(run(kind, block, number, folder, commands))
    seconds = time.perf_counter() - started
    print(f"  {seconds:.0f} s in all, limit {limit:.0f} s")
    counts["WRONG: documents that take too long"] += seconds > limit
    return counts


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--demo-seconds", type=float, default=120.0)
    parser.add_argument("--tutorial-seconds", type=float, default=600.0)
    options = parser.parse_args()
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        commands = install(folder, options.wheel)
        print(f"installed in {time.perf_counter() - started:.0f} s")
        counts = walk("README.md", folder / "readme", commands, options.demo_seconds)
        tutorial = "docs/tutorial/first_audit.md"
        counts += walk(tutorial, folder / "tutorial", commands, options.tutorial_seconds)
    sys.exit(finish(counts, started))


if __name__ == "__main__":
    main()
