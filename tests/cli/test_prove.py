"""`feta prove`: exit codes, words, the state of draws, interruption."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from feta import FeatureSpace, Integer, Model, Network, Real, load_model, save_model
from feta.cli import prove as command
from feta.everybody import population
from feta.everybody.prove import proving
from feta.everybody.proving import Proving
from feta.everybody.where import Where
from feta_people_check.__main__ import main as check

Run = Callable[..., tuple[int, str, str]]

pytestmark = pytest.mark.usefixtures("files")

SPACE = FeatureSpace(
    (Integer("age", 18, 27, sensitive=True), Integer("income", 0, 99), Real("hours", 0.0, 80.0))
)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a model in which incomes from 24 to 32 are treated unfairly, a blind one, a table."""
    monkeypatch.chdir(tmp_path)
    for name, slope in (("model.feta", 1.0), ("blind.feta", 0.0)):
        network = Network.from_layers([([[slope, 1.0, 0.0]], [-50.5])])
        save_model(Model(SPACE, network, threshold=0.0, outcomes=("no", "yes")), name)
    Path("people.csv").write_text("age,income,hours\n18,30,1\n20,30,2.5\n20,90,3\n27,90,4\n")


def test_somebody_gives_exit_code_1(feta_: Run) -> None:
    code, out, err = feta_("prove", "model.feta", "--seconds", "20")
    assert (code, err) == (1, "")
    assert "at least 91 % are proved to get the same decision" in out
    assert "at least 9 % are proved not to; 0 % are undecided" in out
    assert "One of them: income " in out
    assert ": no" in out
    assert ": yes" in out
    assert "  income " in out.split("Where unfairness is frequent")[1]


def test_nobody_gives_exit_code_0(feta_: Run) -> None:
    code, out, _ = feta_("prove", "blind.feta")
    assert (code, out) == (
        0,
        "Of all people whom the schema allows, all values counted equally: nobody is treated "
        "unfairly. This is proved: the score cannot depend on the sensitive columns.\n",
    )
    code, out, _ = feta_("prove", "model.feta", "--where", "income > 40")
    assert code == 0
    assert "where income > 40" in out


def test_no_time_gives_exit_code_3(feta_: Run) -> None:
    code, out, _ = feta_("prove", "model.feta", "--seconds", "0", "--where", "income > 40")
    assert code == 3
    assert "0 % are proved to get the same decision" in out
    assert "nobody who is treated unfairly was found so far" in out


@pytest.mark.parametrize(("bar", "code"), [("0.09", 0), ("0.0899", 1), ("0", 1), ("1", 0)])
def test_a_bar_decides_the_exit_code(feta_: Run, bar: str, code: int) -> None:
    assert feta_("prove", "model.feta", "--seconds", "20", "--exit-above", bar)[0] == code


def test_populations_of_a_table(feta_: Run) -> None:
    code, out, _ = feta_("prove", "model.feta", "--population", "people.csv", "--json")
    answer = json.loads(out)
    assert (code, answer["format"], answer["proved"]["method"]) == (1, "feta-prove", "enumeration")
    assert (answer["proved"]["fair"], answer["proved"]["unfair"]) == ("1/2", "1/2")
    assert answer["population"] == "the 4 people of the table"
    code, out, _ = feta_("prove", "model.feta", "--population", "marginals:people.csv", "--json")
    assert json.loads(out)["proved"]["unfair"] == "1/2"
    # With income protected and age shared, nobody has only one decision.
    code, out, _ = feta_("prove", "model.feta", "--protect", "income", "--json", "--seconds", "20")
    assert (code, json.loads(out)["proved"]["unfair"]) == (1, "1")


def test_bad_input_gives_exit_code_2(feta_: Run) -> None:
    for options, message in (
        (["--where", "age < 20"], "invalid condition: got the sensitive column 'age'"),
        (["--where", "income <"], "invalid condition 'income <'"),
        (["--population", "marginals:"], "invalid population: got 'marginals:'"),
        (["--protect", "sex"], "unknown attribute"),
        (["--resume", "people.csv"], "invalid state file people.csv"),
        (["--alpha", "2"], "invalid alpha: got 2.0"),
    ):
        code, out, err = feta_("prove", "model.feta", *options)
        assert (code, out) == (2, "")
        assert message in err


def test_draws_are_resumed_and_other_questions_refused(feta_: Run) -> None:
    first = feta_("prove", "model.feta", "--seconds", "0.3", "--resume", "draws.json", "--json")
    people = json.loads(first[1])["sampled"]["people"]
    assert json.loads(Path("draws.json").read_text())["people"] == people
    second = feta_("prove", "model.feta", "--seconds", "0", "--resume", "draws.json", "--json")
    assert json.loads(second[1])["sampled"]["people"] == people
    code, _, err = feta_("prove", "model.feta", "--resume", "draws.json", "--where", "income > 3")
    assert code == 2
    assert "the state belongs to another question" in err
    for damaged in ('{"format": "feta-draws"}', "[", '{"format": "feta-draws", "people": -1}'):
        Path("draws.json").write_text(damaged)
        assert feta_("prove", "model.feta", "--resume", "draws.json")[0] == 2


def test_an_interruption_keeps_the_answer(feta_: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    original, calls = Proving._draw, []

    def draw(self: Proving, deadline: float, size: int) -> None:
        original(self, deadline, size)
        calls.append(size)
        if len(calls) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Proving, "_draw", draw)
    code, out, err = feta_("prove", "model.feta", "--resume", "draws.json")
    assert code == 1
    assert "this is the answer so far" in err
    assert "are proved not to" in out
    assert json.loads(Path("draws.json").read_text())["people"] == sum(calls)


def test_a_certificate_is_written_and_accepted(feta_: Run) -> None:
    code, _, err = feta_("prove", "blind.feta", "--seconds", "5", "--certify", "people.cert")
    assert code == 0
    assert "wrote people.cert and people.cert.feta" in err
    assert check(["people.cert.feta", "people.cert"]) == 0
    assert len(Path("people.cert").read_bytes()) < 1000
    table = ("--population", "people.csv")
    code, out, err = feta_("prove", "model.feta", *table, "--seconds", "5", "--certify", "x.cert")
    assert code == 1
    assert "of the table" in out
    assert "no certificate: the population consists of the rows of a table" in err
    code, _, err = feta_("prove", "model.feta", "--certify", "nowhere/x.cert")
    assert code == 2
    assert "nowhere does not exist" in err


def test_the_line_of_progress_names_shares_and_time() -> None:
    model = load_model("model.feta")
    run = proving(model, population.uniform(model.space, Where()))
    line = command.progress_line(run.result(), 12.3, 60)
    assert line == (
        "12 of 60 s: proved fair 0 %, proved unfair 0 %, undecided 100 %; sampled: 0 % to 100 % "
        "unfair"
    )
    assert np.isfinite(run.result().seconds)


def test_the_page_has_the_answer_and_escapes_names(feta_: Run) -> None:
    code, _, _ = feta_("prove", "model.feta", "--seconds", "20", "--out", "everybody.html")
    page = Path("everybody.html").read_text()
    assert code == 1
    assert "Of all people whom the schema allows, all values counted equally, 9 % are" in page
    assert '<b class="unbroken">91 %</b> proved to be treated fairly' in page
    assert "<b>age</b>" in page
    assert "model.feta" in page
    assert "income &lt;= " in page
    assert "<script" not in page


@pytest.mark.parametrize(
    ("out", "words"),
    [
        ("missing/page.html", "the folder missing does not exist; create it first"),
        (".", "--out is a folder; expected a file"),
        ("model.feta", "--out is an input of this command; name another file"),
    ],
)
def test_an_invalid_page_is_refused_before_any_work(feta_: Run, out: str, words: str) -> None:
    code, _, err = feta_("prove", "model.feta", "--out", out)
    assert code == 2
    assert words in " ".join(err.split())
