"""Every block of the documentation runs, and its claims about files match what is written."""

import csv
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import feta
from feta import MissingExtra
from feta.cli.app import app
from feta.datasets import adult, german, law
from tests.extras import skip_if_missing

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"```(python|sh)\n(.*?)```", re.DOTALL)
PAGES = [path for path in sorted(DOCS.rglob("*.md")) if BLOCK.search(path.read_text("utf-8"))]


def run_feta(line: str) -> None:
    """Run a command as on the page; a counterexample is not a failure."""
    name, *arguments = shlex.split(line)
    if name == "python":  # a program without FETA
        subprocess.run([sys.executable, *arguments], check=True, timeout=300)
        return
    done = CliRunner().invoke(app, arguments, standalone_mode=False)
    assert name == "feta"
    if isinstance(done.exception, MissingExtra):
        skip_if_missing(done.exception)
    assert done.exception is None, f"{line}\n{done.exception!r}"
    assert done.return_value in (0, 1), f"{line}\n{done.output}"


def run_block(kind: str, block: str, page: Path, names: dict[str, object]) -> None:
    if kind == "sh":
        for line in block.strip().splitlines():
            run_feta(line)
        return
    try:
        exec(compile(block, str(page), "exec"), names)
    except (MissingExtra, ModuleNotFoundError) as error:
        skip_if_missing(error)
        raise


def test_pages_have_blocks() -> None:
    assert {path.relative_to(DOCS).as_posix() for path in PAGES} >= {
        "tutorial/first_audit.md",
        "how-to/any_model.md",
        "how-to/certificates.md",
        "how-to/ci_gate.md",
        "how-to/compare.md",
        "how-to/deploying.md",
        "how-to/everybody.md",
        "how-to/keras.md",
        "how-to/onnx.md",
        "how-to/pytorch.md",
        "how-to/sklearn.md",
        "how-to/trees.md",
        "how-to/weights.md",
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("forgotten_imports")
def test_every_block_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for kind, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        run_block(kind, block, page, names)


@pytest.mark.parametrize(
    ("audit", "diff", "code", "compared"), [(2, 0, 1, False), (1, 0, 0, True), (0, 1, 1, True)]
)
def test_the_gate_fails_if_the_audit_does_not_run(
    tmp_path: Path, audit: int, diff: int, code: int, compared: bool
) -> None:
    page = (DOCS / "how-to" / "ci_gate.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    stub = tmp_path / "feta"
    stub.write_text(
        f'#!/bin/sh\n[ "$1" = diff ] && touch compared && exit {diff}\n'
        f"[ ! -e new ] && exit {audit}\n"
    )
    stub.chmod(0o755)
    (tmp_path / "new").mkdir()  # of an earlier run
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, env=os.environ | {"PATH": path}, check=False
    )
    assert (done.returncode, (tmp_path / "compared").exists()) == (code, compared)


@pytest.mark.parametrize("name", ["lending", "hiring", "insurance", "credit", "income"])
@pytest.mark.filterwarnings("ignore")
def test_an_example_runs_and_writes_its_report(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Path(os.environ.get("FETA_DATA_DIR", ""))
    if name == "income" and not (data / "adult" / "adult.data").is_file():
        pytest.skip("adult/adult.data is not in FETA_DATA_DIR")
    monkeypatch.chdir(tmp_path)
    try:
        runpy.run_path(str(ROOT / "examples" / f"{name}.py"))
    except ModuleNotFoundError as error:
        skip_if_missing(error)
        raise
    assert (tmp_path / f"{name}.html").stat().st_size > 10_000


def test_the_example_of_prices_averages_both_sexes(capsys: pytest.CaptureFixture[str]) -> None:
    content = runpy.run_path(str(ROOT / "examples" / "pricing.py"))
    people, best, cars = content["X"], content["best"], content["cars"]
    share = people["sex"].mean()
    by_sex = [best.predict(cars.assign(sex=sex)[["sex", "power"]]) for sex in (0, 1)]
    expected = (1 - share) * by_sex[0] + share * by_sex[1]
    assert content["fair"].predict(cars) == pytest.approx(expected, rel=1e-9)
    slope = content["blind"].coef_[0]
    assert slope > 3.5 > best.coef_[1]  # without the column, sex enters through the power
    assert capsys.readouterr().out.count("hp: women") == 3


def section(page: str, title: str) -> str:
    """Return the text of a section of a reference page."""
    content = (DOCS / "reference" / page).read_text(encoding="utf-8")
    (text,) = re.findall(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", content, re.DOTALL | re.M)
    return str(text)


def documented(title: str) -> set[str]:
    """Return what a section of the page on formats names in backquotes, tables included."""
    return set(re.findall(r"`([^`\n]+)`", section("formats.md", title)))


@pytest.fixture
def audited(tmp_path: Path) -> Path:
    """Audit two people with a small model, and return the folder."""
    space = feta.FeatureSpace((feta.Integer("age", 18, 90, sensitive=True), feta.Real("pay", 0, 9)))
    network = feta.Network.from_layers([([[0.1, 1.0]], [-5.0])])
    feta.save_model(feta.Model(space, network, threshold=0.0), tmp_path / "model.feta")
    (tmp_path / "people.csv").write_text("age,pay\n18,2\n60,8\n")
    arguments = [str(tmp_path / "model.feta"), "--data", str(tmp_path / "people.csv")]
    command = ["audit", *arguments, "--out", str(tmp_path / "audit")]
    assert CliRunner().invoke(app, command, standalone_mode=False).return_value == 1
    return tmp_path / "audit"


def test_every_field_of_audit_json_is_documented(audited: Path) -> None:
    content = json.loads((audited / "audit.json").read_text())
    written = {*content, *content["model"], *content["summary"], *content["clearest_pairs"][0]}
    assert written >= {"format", "reading", "ce_rate", "replayed"}
    assert written <= documented("audit.json, version 1")


@pytest.mark.parametrize("name", ["verdicts.csv", "pairs.csv"])
def test_every_column_of_a_csv_file_is_documented(audited: Path, name: str) -> None:
    with (audited / name).open(encoding="utf-8", newline="") as file:
        header = next(csv.reader(file))
    names = documented(name)
    assert set(header) - {"age", "pay", "counterpart age"} <= names
    assert header[0] == "row"


def test_every_field_of_a_model_file_is_documented(audited: Path) -> None:
    content = (audited.parent / "model.feta").read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    described = json.loads(header.pop("__metadata__")["feta-model"])
    written = {*described, *described["network"], *described["fingerprints"]}
    arrays = {re.sub(r"\d+", "<n>", name) for name in header}
    assert arrays >= {"first.bias"}
    assert written | arrays <= documented(".feta, version 1")


def schema_examples() -> list[str]:
    """Return a schema for each example in the tables of the page on schemas."""
    names = ("[decision]", "[columns]", "[table]")
    decision, columns, table = (section("schema.md", name) for name in names)
    age = 'age = { type = "integer", min = 18, max = 90, sensitive = true }'
    one_column = f"[columns]\n{age}\n"
    further = decision.index("further key |")
    kinds = re.findall(r"^\| `(\w+ = [^`]+)`", decision[:further], re.M)
    examples = [f"[decision]\n{kind}\n{one_column}" for kind in kinds]
    companions = {"one_vs_rest": 'classes = ["basic", "silver", "gold"]', "unit": "tolerance = 1.0"}
    for line in re.findall(r"^\| `(\w+ = [^`]+)`", decision[further:], re.M):
        kind = companions.get(line.split()[0], "threshold = 0.5")
        examples.append(f"[decision]\n{kind}\n{line}\n{one_column}")
    lines = re.findall(r"`(\w+ = \{ (?:type|from) [^`]+)`", columns)
    examples += [one_column + line for line in lines if line != age]
    lines = re.findall(r"^\| `\w+`.*? \| `(\w+ = [^`]+)`", table, re.M)
    return examples + [f"[table]\n{line}\n{one_column}" for line in lines]


@pytest.mark.parametrize("text", schema_examples())
def test_every_example_of_a_schema_is_valid(text: str, tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(text, encoding="utf-8")
    schema = feta.read_schema(tmp_path / "schema.toml")
    assert schema.space.sensitive


def test_table_of_datasets_matches_their_spaces() -> None:
    page = (DOCS / "reference" / "datasets.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\|[^|]*\| ([\d,]+) \| ([\d,]+) \|", page, re.M)
    spaces = {"german": german.load_german().space, "law": law.SPACE}
    spaces |= dict.fromkeys(("adult", "ipums"), adult.adult_space())
    expected = {name: (space.width, space.lattice.size) for name, space in spaces.items()}
    written = {
        name: tuple(int(figure.replace(",", "")) for figure in figures) for name, *figures in rows
    }
    assert written == expected
    assert f"| {len(german.load_german().frame):,} |" in page
