"""The README's code and commands run unchanged."""

import re
import shlex
from pathlib import Path

import pytest

from feta import MissingExtra
from feta.cli.run_command import run_command
from tests.extras import skip_if_missing

README = Path(__file__).parents[2] / "README.md"


def test_every_python_block_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # keeps its files out of the repository
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        try:
            exec(compile(block, str(README), "exec"), {})
        except (MissingExtra, ModuleNotFoundError) as error:
            skip_if_missing(error)
            raise


def test_the_commands_on_the_bundled_data_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```sh\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    commands = [shlex.split(line) for line in block.strip().splitlines()]
    assert [run_command(arguments) for _, *arguments in commands] == [0, 1, 0]
    assert {"report.html", "pairs.csv", "verdicts.csv", "audit.json"} <= {
        path.name for path in (tmp_path / "audit").iterdir()
    }
    decisions = (tmp_path / "decisions.csv").read_text(encoding="utf-8").splitlines()
    assert len(decisions) == 1 + 1000
