"""`feta explain`: reasons in words and in JSON, compared with the predictor."""

import json
from pathlib import Path

import pytest

from feta import Categorical, FairPredictor, FeatureSpace, Integer, Model, Network, save_model
from tests.cli.commands import run

SPACE = FeatureSpace(
    (
        Integer("age", 18, 27, sensitive=True),
        Integer("income", 0, 60),
        Categorical("town", ("a", "b")),
    )
)
ROWS = [
    ("p1", "", "10", "a"),
    ("p2", "20", "50", "b"),
    ("p3", "x", "29", "b"),
    ("p4", "3", "0", "a"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    network = Network.from_layers([([[0.1, 1.0, 0.0, 5.0]], [-37.0])])
    model = Model(SPACE, network, threshold=0.0, outcomes=("no", "yes"))
    save_model(FairPredictor(model), tmp_path / "m.feta")
    table = "\n".join(",".join(row) for row in [("name", "age", "income", "town"), *ROWS])
    (tmp_path / "people.csv").write_text(table + "\n")
    return tmp_path


def explain(folder: Path, *arguments: str) -> tuple[int, str, str]:
    done = run("explain", "m.feta", "--data", "people.csv", *arguments, cwd=folder)
    return done.returncode, done.stdout, done.stderr


def test_reasons_of_everybody_who_is_refused(folder: Path) -> None:
    """The median age decides, so the income must reach 35 in a, and 30 in b."""
    code, out, _ = explain(folder, "--change", "income:up,town")
    assert code == 0
    lines = out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["Row 1", "Row 3", "Row 4"]
    assert (
        "The principal reason: income is too low (10; 35 would have been yes). Proved" in lines[0]
    )
    assert "income is too low (29; 30 would have been yes)" in lines[1]
    assert "income is too low (0; 35 would have been yes)" in lines[2]
    assert explain(folder, "--change", "income", "--people", "1")[1].count("Row") == 1


def test_json_rows_and_ids(folder: Path) -> None:
    asked = ("--row", "4", "--id", "name", "--person", "p1", "--person", "p2", "--json")
    code, out, _ = explain(folder, "--change", "income:0..34:per=5", "--change", "town", *asked)
    assert code == 0
    content = json.loads(out)["explanations"]
    assert [(one["row"], one["id"], one["finding"]) for one in content] == [
        (4, "p4", "found"),
        (1, "p1", "found"),
        (2, "p2", "already favorable"),
    ]
    assert content[0]["changes"] == [
        {"column": "income", "before": 0, "after": 30, "size": 6.0},
        {"column": "town", "before": "a", "after": "b", "size": 1.0},
    ]
    assert content[0]["minimal"]
    assert "With the second value of each" in " ".join(content[0]["sentences"])


def test_no_change_suffices_and_nothing_is_proved(folder: Path) -> None:
    code, out, _ = explain(folder, "--change", "town", "--row", "1")
    assert code == 0
    assert "No allowed change of these columns makes it yes: all were decided." in out
    code, out, _ = explain(folder, "--change", "income:up", "--row", "1", "--max-decisions", "1")
    assert code == 3
    assert "Found, not proved minimal" in out
    assert explain(folder, "--change", "income", "--row", "2")[1].endswith("is yes already.\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--change", "age"), "'age' is no reason: got a sensitive column"),
        (("--change", "incom"), "did you mean 'income'"),
        (("--change", "income:left"), "got 'left' in 'income:left'; expected up, down"),
        (("--change", "income", "--row", "9"), "no row 9 that can be read in people.csv"),
        (("--change", "income", "--person", "p1"), "ids of no column"),
        (("--change", "income", "--id", "name", "--person", "p9"), "no person 'p9' in the column"),
        (("--change", "income", "--favorable", "maybe"), "unknown decision: got 'maybe'"),
        (("--change", ","), "expected one column or more"),
    ],
)
def test_what_cannot_be_explained_is_refused(
    folder: Path, arguments: tuple[str, ...], words: str
) -> None:
    code, out, err = explain(folder, *arguments)
    assert (code, out) == (2, "")
    assert words in err


def test_bad_rows_are_counted_and_named_columns_of_a_table_are_escaped(folder: Path) -> None:
    with (folder / "people.csv").open("a") as file:
        file.write("\x1b[31mp5,20,5,a\np6,20,much,a\n")
    code, out, err = explain(folder, "--change", "income", "--id", "name")
    assert code == 0
    assert "rows that could not be read: 1; feta predict says why" in err
    assert "\x1b" not in out
    assert "Row 5" in out
