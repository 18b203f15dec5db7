import os
import re
import subprocess
import sys
from importlib.metadata import version

import pytest

from feta.datasets import load
from tests.cli import commands

FAILING = """
from feta.cli.app import app
from feta.cli.run_command import main
from feta.errors import SchemaError

@app.command()
def fail(how: str) -> None:
    raise {"ours": SchemaError("no space"), "bug": RuntimeError("boom"),
           "stop": KeyboardInterrupt()}[how]

main()
"""


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if name != "FETA_TRACEBACK"}
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=600,
        check=False,
        env={**inherited, "COLUMNS": "120", "PYTHONIOENCODING": "utf-8", **environment},
    )


def test_help_lists_the_commands() -> None:
    done = run("-m", "feta", "--help")
    assert done.returncode == 0
    assert "demo" in done.stdout
    assert "whose decision would change" in done.stdout
    narrow = run("-m", "feta", "--help", COLUMNS="80").stdout.partition("Commands:")[2]
    lines = [line for line in narrow.splitlines() if line]
    assert len(lines) >= 10
    assert all(line.endswith(".") and not line.endswith("...") for line in lines)
    assert done.stderr == ""


def test_version_is_that_of_the_package() -> None:
    done = run("-m", "feta", "--version")
    assert (done.returncode, done.stdout) == (0, f"feta {version('feta-fair')}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["frobnicate"], "feta: No such command 'frobnicate'"),
        (["--frobnicate"], "feta: No such option: --frobnicate"),
        (["demo", "--seed", "x"], "feta: Invalid value for '--seed': "),
    ],
)
def test_a_wrong_command_is_reported_without_a_traceback(
    arguments: list[str], message: str
) -> None:
    done = run("-m", "feta", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "--help" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("failure", "code", "message"),
    [
        ("ours", 2, "feta: no space\n"),
        (
            "bug",
            4,
            "feta: internal error: RuntimeError: boom; FETA_TRACEBACK=1 shows the traceback\n",
        ),
    ],
)
def test_every_failure_has_its_exit_code_and_one_line(
    failure: str, code: int, message: str
) -> None:
    done = run("-c", FAILING, "fail", failure)
    assert (done.returncode, done.stderr) == (code, message)


def test_an_interrupted_command_exits_with_130_without_a_traceback() -> None:
    done = run("-c", FAILING, "fail", "stop")
    assert done.returncode == 130
    assert "Traceback" not in done.stderr


def test_a_traceback_is_shown_on_demand() -> None:
    done = run("-c", FAILING, "fail", "bug", FETA_TRACEBACK="1")
    assert "Traceback" in done.stderr
    assert done.stderr.endswith("RuntimeError: boom\n")


def test_demo_prints_every_section() -> None:
    done = commands.run("demo")
    assert (done.returncode, done.stderr.strip()) == (0, "")
    for line in (
        "German credit: 1,000 loan files, 20 columns, 61 network inputs",
        "Everybody has 456 counterparts",
        "of 1,000 people have a counterpart with another decision (",
        "; 0 are undecided.",
        "456,000 counterparts were decided exactly in",
        "Selected counterexamples",
        "One attribute alone is enough for: personal_status",
        "none, by construction",
        "never: the columns were deleted",
        "What next",
    ):
        assert line in done.stdout
    ages = load("german").frame["age"]
    pairs = re.findall(r"^ *(\d+) +age +(\d+) → ", done.stdout, re.MULTILINE)
    assert pairs
    assert all(ages[int(row) - 1] == int(age) for row, age in pairs)  # counted from 1
