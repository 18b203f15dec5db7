"""Every block of the documentation runs as it stands, and the site it is built to holds together."""

import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from feta import MissingExtra
from feta import __all__ as feta_names
from feta.cli.app import app
from tests.extras import skip_if_missing

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"```(python|sh)\n(.*?)```", re.DOTALL)
PAGES = [path for path in sorted((ROOT / "docs").glob("*.md")) if BLOCK.search(path.read_text())]


def feta(line: str) -> None:
    """Run a command as the page shows it; a counterexample is not a failure."""
    name, *arguments = shlex.split(line)
    done = CliRunner().invoke(app, arguments, standalone_mode=False)
    assert name == "feta"
    if isinstance(done.exception, MissingExtra):
        skip_if_missing(done.exception)
    assert done.exception is None, f"{line}\n{done.exception!r}"
    assert done.return_value in (0, 1), f"{line}\n{done.output}"


def test_there_are_pages_with_blocks() -> None:
    assert {path.stem for path in PAGES} >= {
        "tutorial",
        "deploying",
        "models",
        "howto_sklearn",
        "howto_pytorch",
        "howto_onnx",
        "howto_keras",
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")
def test_every_block_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for kind, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "python":
            try:
                exec(compile(block, str(page), "exec"), names)
            except (MissingExtra, ModuleNotFoundError) as error:
                skip_if_missing(error)
                raise
        else:
            for line in block.strip().splitlines():
                feta(line)


@pytest.mark.parametrize(
    ("audit", "diff", "code", "compared"), [(2, 0, 1, False), (1, 0, 0, True), (0, 1, 1, True)]
)
def test_the_gate_of_the_tutorial_closes_where_the_audit_did_not_run(
    tmp_path: Path, audit: int, diff: int, code: int, compared: bool
) -> None:
    tutorial = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```text\n(.*?)```", tutorial, re.DOTALL)
    stub = tmp_path / "feta"
    stub.write_text(
        f'#!/bin/sh\n[ "$1" = diff ] && touch compared && exit {diff}\n[ ! -e new ] && exit {audit}\n'
    )
    stub.chmod(0o755)
    (tmp_path / "new").mkdir()  # of an earlier run
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, env=os.environ | {"PATH": path}, check=False
    )
    assert (done.returncode, (tmp_path / "compared").exists()) == (code, compared)


@pytest.mark.parametrize("name", ["lending", "hiring", "insurance"])
@pytest.mark.filterwarnings("ignore")
def test_an_example_runs_and_writes_its_report(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"))
    assert (tmp_path / f"{name}.html").stat().st_size > 10_000


def test_the_site_is_built_and_its_links_lead_somewhere(tmp_path: Path) -> None:
    builder = [sys.executable, str(ROOT / "scripts" / "build_docs.py"), str(tmp_path)]
    subprocess.run(builder, check=True, timeout=600, env=os.environ)
    built = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert "feta audit" in built["cli.html"]
    for name in feta_names:
        assert f'<h2 id="{name}">' in built["api.html"]
    assert "`" not in re.sub(r"<pre>.*?</pre>", "", built["api.html"], flags=re.DOTALL)
    for name, page in built.items():
        for link in re.findall(r'href="([^":]+\.html)"', page):
            assert link in built, f"{name} -> {link}"
        for link in re.findall(r'href="#([^"]+)"', page):
            assert f'id="{link}"' in page, f"{name} -> #{link}"
