"""Audits, decisions and fits of a schema with a causal model, as users run them."""

import json
from pathlib import Path

import pytest

import feta
from feta.io.schema import read_schema
from tests.cli.commands import rows_of, run

COLUMNS = """
[decision]
favorable = "yes"
unfavorable = "no"
score = 0.0

[columns]
sex = { type = "category", values = ["female", "male"], sensitive = true }
income = { type = "integer", min = 0, max = 100 }
debt = { type = "number", min = 0, max = 100 }
"""
EQUATION = """
[[consequences.equations]]
column = "income"
shifts.sex = { male = 10 }
"""
# Favorable from the income 50 on.
PEOPLE = {
    "fair": ("female", 70),
    "unfair": ("female", 45),
    "also unfair": ("male", 55),
    "nobody": ("female", 95),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "schema.toml").write_text(COLUMNS + EQUATION)
    (tmp_path / "plain.toml").write_text(COLUMNS)
    save(tmp_path)
    rows = [f"{name},{sex},{income},5" for name, (sex, income) in PEOPLE.items()]
    (tmp_path / "people.csv").write_text("\n".join(["id,sex,income,debt", *rows]) + "\n")
    return tmp_path


def save(folder: Path) -> None:
    declared = read_schema(folder / "schema.toml")
    weights = [[0.0, 0.0, 1.0, 0.0]]
    network = feta.Network.from_layers([(weights, [-50.0])])
    model = feta.Model(
        declared.space, network, declared.rule, outcomes=("no", "yes"), relation=declared.relation
    )
    feta.save_model(model, folder / "loan.feta")


AUDIT = ("audit", "loan.feta", "--data", "people.csv", "--id", "id", "--out", "out")


def test_an_audit_compares_people_with_the_same_noise(folder: Path) -> None:
    done = run(*AUDIT, cwd=folder)
    assert done.returncode == 1
    verdicts = {row["id"]: row for row in rows_of(folder / "out" / "verdicts.csv")}
    assert {name: row["verdict"] for name, row in verdicts.items()} == {
        "fair": "fair",
        "unfair": "unfair",
        "also unfair": "unfair",
        "nobody": "undecided",
    }
    (pair, *_) = rows_of(folder / "out" / "pairs.csv")
    assert (pair["sex"], pair["income"]) == ("female", "45")
    assert (pair["counterpart sex"], pair["counterpart income"]) == ("male", "55")
    assert pair["changed"] == "sex income"
    out = " ".join(done.stdout.split())
    assert "income: +10 if sex is male" in out
    assert "A person has 1.8 possible combinations" in out
    page = (folder / "out" / "report.html").read_text()
    assert "income moved from 45 to 55, because it follows from sex with the same noise" in page
    again = run(*AUDIT, cwd=folder)  # pairs are read from the journal, and re-evaluated
    assert again.returncode == 1
    assert rows_of(folder / "out" / "verdicts.csv") == list(verdicts.values())


def test_decisions_need_the_sensitive_columns(folder: Path) -> None:
    done = run("predict", "loan.feta", "--data", "people.csv", "--id", "id", cwd=folder)
    assert done.returncode == 0
    assert "these decisions need the sensitive columns" in " ".join(done.stderr.split())
    decided = [line.split(",")[1:] for line in done.stdout.splitlines()[1:]]
    assert [name for name, _ in decided] == [f'"{name}"' for name in PEOPLE]
    assert decided[1][1] == decided[2][1]  # they have the same noise
    lines = (folder / "people.csv").read_text().splitlines()
    cells = [line.split(",") for line in lines]
    (folder / "blind.csv").write_text("\n".join(f"{a},{c},{d}" for a, _, c, d in cells) + "\n")
    done = run("predict", "loan.feta", "--data", "blind.csv", "--id", "id", cwd=folder)
    assert done.returncode == 2
    assert "the table must have the column 'sex'" in done.stderr


def test_relations_without_a_key_are_audited_without_fair_decisions(folder: Path) -> None:
    for section in ("[similar]\nincome = 10\n", '[consequences]\noutside = "clip"\n' + EQUATION):
        (folder / "schema.toml").write_text(COLUMNS + section)
        save(folder)
        done = run(*AUDIT, cwd=folder)
        assert done.returncode == 1
        assert "fair decisions exist" in " ".join(done.stdout.split())
        verdicts = {row["id"]: row for row in rows_of(folder / "out" / "verdicts.csv")}
        assert verdicts["unfair"]["verdict"] == "unfair"
        assert verdicts["nobody"]["verdict"] == "fair"
        assert {row["fair decision"] for row in verdicts.values()} == {""}
        assert (
            "What enforcing fairness would cost" not in (folder / "out" / "report.html").read_text()
        )
        refused = run(*AUDIT, "--certify", cwd=folder)
        assert refused.returncode == 2
        assert "no certificate for the relation" in refused.stderr
        refused = run("predict", "loan.feta", "--data", "people.csv", cwd=folder)
        assert refused.returncode == 2
        assert "no fair decision exists: got the relation" in refused.stderr
        examined = run("doctor", "loan.feta", "--data", "people.csv", cwd=folder)
        assert "can be audited, but the relation of the schema has no fair" in examined.stdout


def test_a_certificate_of_consequences_is_not_checkable(folder: Path) -> None:
    run(*AUDIT, "--certify", cwd=folder)
    result = feta.check(folder / "out")
    assert (result.re_proved, result.false, result.not_checked) == (0, 0, 4)


def test_another_relation_is_another_question(folder: Path) -> None:
    run(*AUDIT, cwd=folder)
    (folder / "schema.toml").write_text(COLUMNS)
    save(folder)
    run(*AUDIT[:-1], "other", cwd=folder)
    done = run("diff", "out", "other", cwd=folder)
    assert done.returncode != 0
    assert "The question differs: relation was" in done.stdout


def test_the_service_and_graphs_refuse_these_decisions(folder: Path) -> None:
    refused = run("export", "loan.feta", "--fair", "--out", "fair.onnx", cwd=folder)
    assert refused.returncode == 2
    assert "no graph for this relation: got Consequences" in refused.stderr
    pytest.importorskip("uvicorn")
    refused = run("serve", "loan.feta", "--port", "0", cwd=folder)
    assert refused.returncode == 2
    assert "decisions by [consequences] are not served" in " ".join(refused.stderr.split())


def test_equations_are_fitted_and_can_be_appended_to_the_schema(folder: Path) -> None:
    rows = [
        f"p{n},{sex},{40 + 10 * (sex == 'male') + n % 7},{n % 90}"
        for n in range(60)
        for sex in ("female", "male")
    ]
    (folder / "many.csv").write_text("\n".join(["id,sex,income,debt", *rows]) + "\n")
    fit = ("causes", "fit", "many.csv", "--schema", "plain.toml", "--graph", "sex -> income")
    done = run(*fit, cwd=folder)
    assert done.returncode == 0
    assert "# income: 120 people; the causes explain" in done.stdout
    assert "shifts.sex = { male = 10.0 }" in done.stdout
    again = run(*fit, "--out", "equations.toml", cwd=folder)
    assert again.returncode == 0
    equations = (folder / "equations.toml").read_text()
    assert equations == done.stdout
    (folder / "schema.toml").write_text(COLUMNS + equations)
    assert read_schema(folder / "schema.toml").relation.stored is not None
    done = run(*fit[:-1], "income -> sex", cwd=folder)
    assert done.returncode == 2
    assert "an equation of a sensitive column: got 'sex'" in done.stderr


def test_a_report_of_constraints_has_its_own_words(folder: Path) -> None:
    run(*AUDIT, cwd=folder)
    summary = json.loads((folder / "out" / "audit.json").read_text())["summary"]
    assert summary["mean_combinations"] == 1.75
    assert summary["nobody_to_compare_with"] == 1
