"""Audits, decisions and certificates of a schema with constraints, as users run them."""

import json
from pathlib import Path

import pytest

import feta
from feta.errors import SchemaError
from feta.io.schema import read_schema, write_schema
from feta.relation.constrained import Constrained
from feta.relation.constraints import read_constraints
from tests.cli.commands import rows_of, run
from tests.examples import linear

SCHEMA = """
[decision]
favorable = "yes"
unfavorable = "no"
score = 0.0

[columns]
age = { type = "integer", min = 18, max = 90, sensitive = true }
sex = { type = "category", values = ["female", "male"], sensitive = true }
income = { type = "number", min = 0, max = 100 }

[[constraints]]
condition = "age - income >= 10"

[[constraints]]
condition = "age == 90 => sex == 'female'"
"""

# Favorable from the age 50 on. Income 76 and more leave one age or none.
PEOPLE = {
    "fair": (70, 50),  # 60 to 90 are plausible: all favorable
    "unfair": (40, 10),
    "alone": (90, 80),
    "implausible": (30, 50),  # the plausible ones are favorable, the person is not
    "implausible and the same": (55, 50),
    "implausible and unfair": (18, 20),
    "nobody": (90, 95),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    schema = tmp_path / "schema.toml"
    schema.write_text(SCHEMA)
    declared = read_schema(schema)
    plain = linear(age=1.0, bias=-50.0)
    model = feta.Model(
        declared.space, plain.network, declared.rule, outcomes=("no", "yes"),
        relation=declared.relation,
    )  # fmt: skip
    feta.save_model(model, tmp_path / "loan.feta")
    rows = [f"{name},{age},female,{income}" for name, (age, income) in PEOPLE.items()]
    (tmp_path / "people.csv").write_text("\n".join(["id,age,sex,income", *rows]) + "\n")
    return tmp_path


AUDIT = ("audit", "loan.feta", "--data", "people.csv", "--id", "id", "--out", "out")


def test_an_audit_compares_plausible_people_only(folder: Path) -> None:
    done = run(*AUDIT, cwd=folder)
    assert done.returncode == 1
    verdicts = {row["id"]: row for row in rows_of(folder / "out" / "verdicts.csv")}
    assert {name: row["verdict"] for name, row in verdicts.items()} == {
        "fair": "fair",
        "unfair": "unfair",
        "alone": "undecided",
        "implausible": "undecided",
        "implausible and the same": "fair",
        "implausible and unfair": "unfair",
        "nobody": "undecided",
    }
    assert "nobody to compare with" not in verdicts["alone"]["decision"]
    assert verdicts["nobody"]["reason"].startswith("the relation admits nobody")
    assert "own decision differs" in verdicts["implausible"]["reason"]
    assert verdicts["implausible"]["decision"] == "no"
    assert verdicts["implausible"]["fair decision"] == "yes"
    for pair in rows_of(folder / "out" / "pairs.csv"):
        for age in (pair["age"], pair["counterpart age"]):
            assert float(age) - float(pair["income"]) >= 10
    out = " ".join(done.stdout.split())
    assert "Plausible means: age - income >= 10; age == 90" in out
    assert "Nobody to compare with: 2 of 7 people" in out
    assert "Own values not plausible: 4 of 7 people" in out
    assert "The decision of 1 of them differs" in out
    assert "so they can re-infer sensitive values" in out
    summary = json.loads((folder / "out" / "audit.json").read_text())["summary"]
    assert summary["nobody_to_compare_with"] == 2
    assert summary["own_values_not_plausible"] == 4
    page = (folder / "out" / "report.html").read_text()
    assert "nobody to compare with" in page
    assert "has plausible values of age and sex" in page


def test_nobody_to_compare_with_is_not_fair(folder: Path) -> None:
    lines = (folder / "people.csv").read_text().splitlines()
    (folder / "people.csv").write_text("\n".join([lines[0], lines[1], lines[3]]) + "\n")
    done = run(*AUDIT, cwd=folder)
    assert done.returncode == 3
    assert "Fair:" not in done.stdout


def test_everybody_with_several_plausible_combinations_may_be_fair(folder: Path) -> None:
    """One of them is outside the limits of the income."""
    lines = (folder / "people.csv").read_text().splitlines()
    outside = "outside,60,male,-900"
    (folder / "people.csv").write_text("\n".join([lines[0], lines[1], outside]) + "\n")
    declared = read_schema(folder / "schema.toml")
    strict = linear(age=1.0, bias=-10.0)
    model = feta.Model(
        declared.space, strict.network, declared.rule, outcomes=("no", "yes"),
        relation=declared.relation,
    )  # fmt: skip
    feta.save_model(model, folder / "loan.feta")
    done = run(*AUDIT, cwd=folder)
    assert done.returncode == 0
    assert "for every plausible combination of age and sex" in " ".join(done.stdout.split())
    summary = json.loads((folder / "out" / "audit.json").read_text())["summary"]
    assert summary["outside_limits"] == {"income": {"below": 1, "above": 0}}
    # 31 ages of women and 30 of men, and with an income below 0, all ages.
    assert summary["mean_combinations"] == (61 + 73 + 72) / 2


def test_a_resumed_audit_gives_the_same_answers(folder: Path) -> None:
    run(*AUDIT, cwd=folder)
    before = rows_of(folder / "out" / "verdicts.csv")
    run(*AUDIT, "--jobs", "2", cwd=folder)
    assert rows_of(folder / "out" / "verdicts.csv") == before


def test_a_certificate_about_this_relation_is_not_checkable(folder: Path) -> None:
    run(*AUDIT, "--certify", cwd=folder)
    done = run("check", "out", cwd=folder)
    assert done.returncode == 3
    result = feta.check(folder / "out")
    assert (result.re_proved, result.false, result.not_checked) == (0, 0, 7)


def test_a_forged_header_does_not_make_it_checkable(folder: Path) -> None:
    run(*AUDIT, "--certify", cwd=folder)
    path = folder / "out" / "certificate.jsonl"
    header, *rest = path.read_text().splitlines(keepends=True)
    known = json.loads(header)
    assert known["relation"].startswith("constrained ")
    path.write_text(header.replace(known["relation"], "all sensitive values") + "".join(rest))
    done = run("check", "out", cwd=folder)
    assert done.returncode in (2, 3)
    assert "re-proved: fair" not in done.stdout


def test_fair_decisions_need_a_plausible_combination(folder: Path) -> None:
    done = run("predict", "loan.feta", "--data", "people.csv", "--out", "fair.csv", cwd=folder)
    assert done.returncode == 3
    decisions = [row["decision"] for row in rows_of(folder / "fair.csv")]
    assert decisions == ["yes", "yes", "yes", "yes", "yes", "yes", "undecided"]
    text = SCHEMA.replace(
        "\n[[constraints]]", '\n[relation]\nif_none = "all"\n\n[[constraints]]', 1
    )
    (folder / "all.toml").write_text(text)
    relation = read_schema(folder / "all.toml").relation
    model = feta.load_model(folder / "loan.feta")
    everybody = feta.Model(model.space, model.network, model.rule, relation=relation)
    person = everybody.space.encode([{"income": 95}], sensitive="ignore")
    assert feta.FairPredictor(everybody).decide(person).tolist() == [True]
    with pytest.raises(feta.Undecided, match="the relation admits nobody with these other"):
        feta.FairPredictor(model).decide(person)


def test_another_relation_is_another_question(folder: Path) -> None:
    run(*AUDIT, cwd=folder)
    model = feta.load_model(folder / "loan.feta")
    entries = read_constraints([{"condition": "age - income >= 11"}], model.space.attributes)
    other = feta.Model(
        model.space, model.network, model.rule, outcomes=model.outcomes,
        relation=Constrained(entries),
    )  # fmt: skip
    feta.save_model(other, folder / "loan.feta")
    run(*AUDIT[:-1], "later", cwd=folder)
    done = run("diff", "out", "later", cwd=folder)
    assert done.returncode == 3
    assert "relation was" in done.stdout + done.stderr


def test_commands_that_need_all_combinations_refuse(folder: Path) -> None:
    done = run("export", "loan.feta", "--fair", "--out", "fair.onnx", cwd=folder)
    assert done.returncode == 2
    assert "no graph for this relation" in done.stderr
    train = ("train", "people.csv", "--schema", "schema.toml", "--label", "y", "--out", "n.onnx")
    done = run(*train, cwd=folder)
    assert done.returncode == 2
    assert "training compares all combinations" in done.stderr
    space = read_schema(folder / "schema.toml").space
    people = space.encode({"age": 70, "sex": "male", "income": 5})
    query = feta.FairAt(feta.load_model(folder / "loan.feta"), people[0])
    with pytest.raises(feta.EngineError, match="can only be enumerated"):
        feta.verify(query, engine="milp")


def test_constraints_are_learned_and_counted(folder: Path) -> None:
    done = run(
        "constraints", "people.csv", "--schema", "schema.toml", "--columns", "sex,age - income",
        "--least", "2", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0
    assert '{ sex = "female", "age - income" = [-20, 30] },' in done.stdout
    plain = SCHEMA.split("[[constraints]]", maxsplit=1)[0]
    (folder / "learned.toml").write_text(plain + done.stdout)
    assert isinstance(read_schema(folder / "learned.toml").relation, Constrained)
    write_schema(read_schema(folder / "learned.toml"), folder / "again.toml")
    first, second = (read_schema(folder / f"{name}.toml").relation for name in ("learned", "again"))
    assert first.fingerprint == second.fingerprint
    done = run("doctor", "loan.feta", "--data", "people.csv", cwd=folder)
    assert "Constraint 'age - income >= 10': 4 of 7 people violate it." in done.stdout


def test_a_changed_relation_in_a_file_is_noticed(folder: Path) -> None:
    content = (folder / "loan.feta").read_bytes()
    changed = content.replace(b"age - income >= 10", b"age - income >= 11")
    assert changed != content
    (folder / "loan.feta").write_bytes(changed)
    with pytest.raises(feta.FetaError, match="does not match its fingerprint"):
        feta.load_model(folder / "loan.feta")


def test_errors_in_a_schema_name_the_entry(folder: Path) -> None:
    (folder / "schema.toml").write_text(SCHEMA.replace("income >=", "incme >="))
    with pytest.raises(SchemaError, match=r"schema.toml: \[\[constraints\]\], entry 1.*position 7"):
        read_schema(folder / "schema.toml")
