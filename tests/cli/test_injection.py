"""Hostile names and values in the files and the terminal output of the commands."""

import csv
import json
import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import feta
from feta.cli.app import app
from feta.io.sanitize import FORMULA_STARTS, plain
from tests.payloads import PAYLOADS, evil_model

# Sequences that Rich itself writes: colors, hidden or shown cursor, redrawn progress lines.
RICH = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\r?\x1b\[(?:2K|1A)|\r")

# No table can contain these: a NUL byte is refused, and a lone surrogate is not a character.
NO_TEXT = [payload for payload in PAYLOADS if "\x00" in payload or "\ud800" in payload]


def write_table(payload: str, path: Path) -> None:
    names = [f"{payload}age", payload, f"{payload}shared", "income", f"{payload}id", f"{payload}x"]
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, quoting=csv.QUOTE_ALL)
        rows.writerow(names)
        rows.writerow([20, payload, payload, 4.0, f"{payload}1", payload])
        rows.writerow([60, "other", f"{payload}2", 5.0, f"{payload}2", payload])


def run_on_terminal(*arguments: str) -> tuple[int, str]:
    """Run a command as on a color terminal; return its exit code and output."""
    environment = {"TTY_COMPATIBLE": "1", "FORCE_COLOR": "1", "COLUMNS": "500", "TERM": "xterm"}
    result = CliRunner().invoke(app, arguments, env=environment, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.return_value, result.output


def read_cells(path: Path) -> list[list[str]]:
    text = path.read_text(encoding="utf-8")
    assert all(
        character.isprintable() or character == "\n" for character in text.replace("\r\n", "\n")
    )
    return list(csv.reader(text.splitlines()))


def check_table(path: Path) -> None:
    rows = read_cells(path)
    assert len(rows) > 1
    assert {len(row) for row in rows} == {len(rows[0])}
    for cell in (cell for row in rows for cell in row):
        number = re.fullmatch(r"-?[0-9.e+-]+", cell)
        assert number or not cell.lstrip().startswith(FORMULA_STARTS), cell


@pytest.mark.parametrize("payload", [payload for payload in PAYLOADS if payload not in NO_TEXT])
def test_payloads_are_escaped_in_files_and_on_a_terminal(
    payload: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    feta.save_model(evil_model(payload), Path("m.feta"))
    write_table(payload, Path("d.csv"))
    options = ("m.feta", "--data", "d.csv", "--id", f"{payload}id")
    code, audited = run_on_terminal("audit", *options, "--out", "audit")
    assert code == 1
    _, decided = run_on_terminal("predict", *options, "--out", "decisions.csv")
    shutil.copytree("audit", "later")
    _, compared = run_on_terminal("diff", "audit", "later")
    _, examined = run_on_terminal("doctor", "m.feta", "--data", "d.csv")
    for text in (audited, decided, compared, examined):
        assert all(character.isprintable() or character == "\n" for character in RICH.sub("", text))
        assert payload.isprintable() or payload not in text
    text_on_terminal = RICH.sub("", audited)
    assert "Unfair: 2 of 2 people" in text_on_terminal
    assert (
        f"{plain(payload)}yes" in text_on_terminal
    )  # unchanged: no markup removed, no template filled
    for name in ("audit/pairs.csv", "audit/verdicts.csv", "decisions.csv"):
        check_table(tmp_path / name)
    content = (tmp_path / "audit" / "audit.json").read_text(encoding="utf-8")
    assert content.isascii()
    assert f"{payload}age" in json.loads(content)["groups"]


def test_text_that_no_table_can_contain_is_refused(tmp_path: Path) -> None:
    (_, payload) = NO_TEXT
    feta.save_model(evil_model("harmless"), tmp_path / "m.feta")
    write_table(payload, tmp_path / "d.csv")
    with pytest.raises(feta.FetaError, match="NUL"):
        run_on_terminal("audit", str(tmp_path / "m.feta"), "--data", str(tmp_path / "d.csv"))
