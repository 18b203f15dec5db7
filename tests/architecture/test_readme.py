"""The README's code runs as it stands."""

import re
from pathlib import Path

import pytest

from feta import MissingExtra
from tests.extras import skip_if_missing

README = Path(__file__).parents[2] / "README.md"


def test_every_python_block_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # what it writes is not for the project's folder
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        try:
            exec(compile(block, str(README), "exec"), {})
        except (MissingExtra, ModuleNotFoundError) as error:
            skip_if_missing(error)
            raise
