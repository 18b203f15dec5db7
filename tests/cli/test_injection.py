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

# Rich's own: colors, the cursor hidden and shown, a line of progress drawn anew.
RICH = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\r?\x1b\[(?:2K|1A)|\r")

# No table can hold these: a NUL byte is refused, and half a character is no text.
NO_TEXT = [one for one in PAYLOADS if "\x00" in one or "\ud800" in one]


def table_of(payload: str, path: Path) -> None:
    names = [f"{payload}age", payload, f"{payload}shared", "income", f"{payload}id", f"{payload}x"]
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, quoting=csv.QUOTE_ALL)
        rows.writerow(names)
        rows.writerow([20, payload, payload, 4.0, f"{payload}1", payload])
        rows.writerow([60, "other", f"{payload}2", 5.0, f"{payload}2", payload])


def shown(*arguments: str) -> tuple[int, str]:
    """Run a command as on a color terminal; give all it shows."""
    environment = {"TTY_COMPATIBLE": "1", "FORCE_COLOR": "1", "COLUMNS": "500", "TERM": "xterm"}
    done = CliRunner().invoke(app, arguments, env=environment, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.return_value, done.output


def cells_of(path: Path) -> list[list[str]]:
    text = path.read_text(encoding="utf-8")
    assert all(one.isprintable() or one == "\n" for one in text.replace("\r\n", "\n"))
    return list(csv.reader(text.splitlines()))


def check_table(path: Path) -> None:
    rows = cells_of(path)
    assert len(rows) > 1
    assert {len(row) for row in rows} == {len(rows[0])}
    for cell in (cell for row in rows for cell in row):
        number = re.fullmatch(r"-?[0-9.e+-]+", cell)
        assert number or not cell.lstrip().startswith(FORMULA_STARTS), cell


@pytest.mark.parametrize("payload", [one for one in PAYLOADS if one not in NO_TEXT])
def test_no_payload_is_alive_in_files_or_on_a_terminal(
    payload: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    feta.save_model(evil_model(payload), Path("m.feta"))
    table_of(payload, Path("d.csv"))
    asked = ("m.feta", "--data", "d.csv", "--id", f"{payload}id")
    code, audited = shown("audit", *asked, "--out", "audit")
    assert code == 1
    _, decided = shown("predict", *asked, "--out", "decisions.csv")
    shutil.copytree("audit", "later")
    _, compared = shown("diff", "audit", "later")
    _, examined = shown("doctor", "m.feta", "--data", "d.csv")
    for text in (audited, decided, compared, examined):
        assert all(one.isprintable() or one == "\n" for one in RICH.sub("", text))
        assert payload.isprintable() or payload not in text
    seen = RICH.sub("", audited)
    assert "Unfair: 2 of 2 people" in seen
    assert f"{plain(payload)}yes" in seen  # as it is: no markup taken out of it, no template filled
    for name in ("audit/pairs.csv", "audit/verdicts.csv", "decisions.csv"):
        check_table(tmp_path / name)
    told = (tmp_path / "audit" / "audit.json").read_text(encoding="utf-8")
    assert told.isascii()
    assert f"{payload}age" in json.loads(told)["groups"]


def test_text_that_no_table_can_hold_is_refused_harmlessly(tmp_path: Path) -> None:
    (_, payload) = NO_TEXT
    feta.save_model(evil_model("harmless"), tmp_path / "m.feta")
    table_of(payload, tmp_path / "d.csv")
    with pytest.raises(feta.FetaError, match="NUL"):
        shown("audit", str(tmp_path / "m.feta"), "--data", str(tmp_path / "d.csv"))
