"""`feta diff`: comparisons of two audits."""

import hashlib
import json
import shutil
from xml.etree import ElementTree as ET

import pytest

from tests.bad_files import ROWS, Folder
from tests.cli.commands import run
from tests.cli.test_commands import insensitive_model


def test_diff_lists_newly_unfair_people(folder: Folder) -> None:
    out, before = folder.path / "out", folder.path / "before"
    good = (folder.path / "model.onnx").read_bytes()
    run(*folder.model(insensitive_model()))
    out.rename(before)
    run(*folder.model(good))
    worse = run("diff", str(before), str(out))
    assert (worse.returncode, worse.stderr) == (1, "")
    assert "Another model, the same table." in worse.stdout
    assert "3 people: fair → unfair" in worse.stdout
    assert "Newly unfair: row 1, row 2, row 3" in worse.stdout
    assert "Worse: 3 people are newly unfair, and more in total: 0 → 3." in worse.stdout
    assert "+75.0 pp" in worse.stdout
    assert run("diff", str(before), str(out), "--allow-new", "3").returncode == 0
    assert run("diff", str(before), str(out), "--allow-new", "2").returncode == 1
    assert run("diff", str(before), str(out), "--rate-only").returncode == 1
    better = run("diff", str(out), str(before / "audit.json"), "--json")
    assert better.returncode == 0
    content = json.loads(better.stdout)
    assert (content["worse"], content["moves"]) == (False, [["unfair", "fair", 3]])


def test_diff_reports_lost_answers(folder: Folder) -> None:
    out, before = folder.path / "out", folder.path / "before"
    run(*folder.model(insensitive_model()))
    out.rename(before)
    run(*folder.model(insensitive_model()), "--seconds", "0", "--engine", "exhaustive")
    undecided = run("diff", str(before), str(out))
    assert undecided.returncode == 3
    assert "4 people: fair → undecided" in undecided.stdout
    assert "time limit per person was no limit and is 0.0 s" in undecided.stdout
    accepted = run("diff", str(before), str(out), "--allow-other-question")
    assert accepted.returncode == 3
    assert "Less settled: answers were lost" in accepted.stdout
    assert run("diff", str(out), str(before)).returncode == 0
    content = json.loads((before / "audit.json").read_text())
    content["model"]["space"] = "another"
    (before / "audit.json").write_text(json.dumps(content | {"partial": True}))
    copy = folder.path / "again"
    shutil.copytree(before, copy)
    partial = run("diff", str(before), str(copy), "--json")
    assert (partial.returncode, json.loads(partial.stdout)["less_settled"]) == (3, True)
    same = run("diff", str(before), str(before / "audit.json"))
    assert (same.returncode, "both arguments name the same audit" in same.stderr) == (2, True)
    other = run("diff", str(out), str(before))
    assert other.returncode == 3
    assert "differs: the columns, their domains or which are sensitive" in other.stdout
    assert "is partial: it was interrupted" in other.stdout


def test_diff_refuses_to_compare_different_queries(folder: Folder) -> None:
    schema = folder.path / "schema.toml"
    text = schema.read_text(encoding="utf-8")
    run(*folder.audit())
    (folder.path / "out").rename(folder.path / "before")
    weaker = text.replace(", sensitive = true", "", 1)
    assert weaker != text
    schema.write_text(weaker, encoding="utf-8")
    run(*folder.audit())
    folders = str(folder.path / "before"), str(folder.path / "out")
    other = run("diff", *folders)
    assert other.returncode == 3
    assert "The same model, the same table." in other.stdout
    assert "The question differs: age is no longer sensitive." in other.stdout
    assert "Not comparable" in other.stdout
    assert run("diff", *folders, "--allow-other-question").returncode in (0, 1)
    suite = ET.fromstring(run("diff", *folders, "--format", "junit").stdout)
    assert (suite.get("failures"), suite.get("errors")) == ("0", "1")
    assert (
        "the difference with --allow-other-question."
        in run("diff", *folders, "--format", "md").stdout
    )


@pytest.mark.parametrize(
    ("before", "after", "sentence", "codes"),
    [
        ("uuuf", "uffu", "Worse: 1 person is newly unfair, but fewer in total: 3 → 2.", (1, 0)),
        ("uf", "fu", "Worse: 1 person is newly unfair, the same number in total: 1.", (1, 0)),
        ("uf", "uu", "Worse: 1 person is newly unfair, and more in total: 1 → 2.", (1, 1)),
        (
            "uf",
            "ff",
            "Not worse: nobody is newly unfair, and no answer was lost.",
            (0, 0),
        ),
    ],
)
def test_diff_states_whether_an_audit_is_worse(
    folder: Folder, before: str, after: str, sentence: str, codes: tuple[int, int]
) -> None:
    code, rate_code = codes
    run(*folder.audit())
    content = json.loads((folder.path / "out" / "audit.json").read_text())
    names = {"u": "unfair", "f": "fair"}
    for name, letters in (("a", before), ("b", after)):
        (folder.path / name).mkdir()
        counts: dict[str, object] = {
            "people": len(letters),
            "unfair": letters.count("u"),
            "fair": letters.count("f"),
        }
        counts |= {"ce_rate": letters.count("u") / len(letters), "one_attribute_is_enough": {}}
        rows = [f"{n},p{n},{names[letter]}" for n, letter in enumerate(letters, start=1)]
        verdicts = "\n".join(["row,id,verdict", *rows]).encode()
        digests = {"verdicts.csv": hashlib.sha256(verdicts).hexdigest()}
        edited = content | {
            "summary": content["summary"] | counts,
            "files": digests,
            "id_column": "id",
        }
        (folder.path / name / "audit.json").write_text(json.dumps(edited))
        (folder.path / name / "verdicts.csv").write_bytes(verdicts)
    folders = str(folder.path / "a"), str(folder.path / "b")
    plain = run("diff", *folders)
    assert (plain.returncode, sentence in plain.stdout) == (code, True)
    rates = run("diff", *folders, "--rate-only")
    assert rates.returncode == rate_code
    assert f"the CE rate {'rose' if rate_code else 'did not rise'}" in rates.stdout
    suite = ET.fromstring(run("diff", *folders, "--format", "junit").stdout)
    assert (suite.get("failures"), suite.get("errors")) == (str(code), "0")
    comment = run("diff", *folders, "--format", "md")
    assert (comment.returncode, f"**{sentence}**" in comment.stdout) == (code, True)


def test_diff_reports_people_who_are_absent(folder: Folder) -> None:
    names = [f"{row},p{n}" for n, row in enumerate(ROWS)]
    for rows, name in ((names, "before"), (names[1:], "after")):
        run(*folder.table("age,sex,income,id\n" + "\n".join(rows)), "--id", "id")
        (folder.path / "out").rename(folder.path / name)
    done = run("diff", str(folder.path / "before"), str(folder.path / "after"))
    assert done.returncode == 3
    assert "1 person: unfair → absent" in done.stdout


def test_diff_needs_two_audits(folder: Folder) -> None:
    missing = run("diff", str(folder.path), str(folder.path))
    assert missing.returncode == 2
    assert "audit.json: no such file; feta audit --out writes it" in missing.stderr
    (folder.path / "audit.json").write_text("[]")
    other = run("diff", str(folder.path), str(folder.path))
    assert "expected format 'feta-audit', version 1; audit again" in other.stderr
