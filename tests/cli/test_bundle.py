"""`feta bundle`: archives are complete, reproducible, and every change in them is refused."""

import csv
import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

import feta
from feta_check import command
from tests.cli.commands import rows_of, run
from tests.examples import SPACE, linear

pytest.importorskip("cryptography")

AUDIT = ("audit", "loan.feta", "--data", "people.csv", "--out", "out", "--certify")
BUNDLE = ("bundle", "out", "--out", "audit.zip")
RACES = ("a", "b", "")


def table(folder: Path) -> None:
    people = product((18, 40, 45, 90), ("female", "male"), RACES)
    lines = [f"{age},{sex},50,{race},{int(age > 40)}" for age, sex, race in people]
    (folder / "people.csv").write_text("\n".join(["age,sex,income,race,good", *lines]) + "\n")


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundled")
    feta.save_model(linear(age=0.1, female=-1.0, bias=-4.0), folder / "loan.feta")
    table(folder)
    run("keys", "new", "key.pem", cwd=folder)
    assert run(*AUDIT, "--label", "good", "--sign", "key.pem", cwd=folder).returncode == 1
    return folder


@pytest.fixture
def folder(audited: Path, tmp_path: Path) -> Path:
    return shutil.copytree(audited, tmp_path / "work")


def unpacked(folder: Path, *options: str) -> Path:
    done = run(*BUNDLE, *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    target = folder / "unpacked"
    with zipfile.ZipFile(folder / "audit.zip") as archive:
        archive.extractall(target)
    return target


def check(target: Path, key: str = "key.pub") -> int:
    return command.main([str(target), "--key", str(target.parent / key)])


def test_a_bundle_is_checked_by_its_own_checker_without_feta(folder: Path) -> None:
    target = unpacked(folder, "--sign", "key.pem")
    # -I: no package of this environment's working directory; -S: no installed one.
    script = "import sys; sys.path.insert(0, '.'); from feta_check.command import main; "
    script += "assert 'feta' not in sys.modules; sys.exit(main(['.', '--key', '../key.pub']))"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script],
        cwd=target, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Manifest: the signature of the key " in done.stdout
    assert done.stdout.endswith("Every claim was re-proved.\n")
    assert command.main([str(target)]) == 3  # no key
    readme = (target / "README.md").read_text()
    listed = set(re.findall(r"^\| `(.*?)` \|", readme, re.MULTILINE))
    names = {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}
    assert listed == {name for name in names if "feta_check" not in name} - {"README.md"} | {
        "feta_check/"
    }


def test_equal_files_give_an_equal_archive(folder: Path) -> None:
    run(*BUNDLE, "--sign", "key.pem", cwd=folder)
    first = (folder / "audit.zip").read_bytes()
    shutil.copytree(folder, folder.parent / "copy")
    run(*BUNDLE, "--sign", "key.pem", cwd=folder.parent / "copy")
    assert (folder.parent / "copy" / "audit.zip").read_bytes() == first
    with zipfile.ZipFile(folder / "audit.zip") as archive:
        names = archive.namelist()
    assert names[:-2] == sorted(names[:-2])


def edit_manifest(target: Path) -> None:
    path = target / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b'"name":"ll144.csv"', b'"name":"ll145.csv"'))
    (target / "ll144.csv").rename(target / "ll145.csv")


def twice_in_the_manifest(target: Path) -> None:
    path = target / "manifest.json"
    manifest = json.loads(path.read_bytes())
    manifest["subject"].append(manifest["subject"][0])
    path.write_text(json.dumps(manifest, sort_keys=True, separators=(",", ":")))


def other_kind(target: Path) -> None:
    path = target / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b"x-feta:bundle", b"x-feta:bumdle"))
    (target / "manifest.dsse.json").unlink(missing_ok=True)


CHANGES: dict[str, Callable[[Path], object]] = {
    "a report": lambda it: (it / "audit" / "report.html").write_text("fair"),
    "the checker": lambda it: (it / "feta_check" / "rules.py").write_text(""),
    "the model": lambda it: (it / "audit" / "model.feta").write_bytes(b""),
    "a file removed": lambda it: (it / "annex_iv.md").unlink(),
    "a file added": lambda it: (it / "audit" / "note.txt").write_text("fair"),
    "a link": lambda it: (it / "audit" / "link").symlink_to(it / "annex_iv.md"),
    "the manifest": edit_manifest,
    "a file twice": twice_in_the_manifest,
    "another kind": other_kind,
    "no manifest signature": lambda it: (it / "manifest.dsse.json").unlink(),
    "no manifest": lambda it: (it / "manifest.json").unlink(),
    "the signature": lambda it: shutil.copy(
        it / "audit" / "certificate.dsse.json", it / "manifest.dsse.json"
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_bundle_is_refused(folder: Path, name: str) -> None:
    target = unpacked(folder, "--sign", "key.pem")
    assert check(target) == 0
    CHANGES[name](target)
    assert check(target) == 2


def link_to_an_equal_file(target: Path) -> None:
    path = target / "annex_iv.md"
    path.rename(target.parent / "annex_iv.md")
    path.symlink_to(target.parent / "annex_iv.md")


@pytest.mark.parametrize("change", [twice_in_the_manifest, other_kind, link_to_an_equal_file])
def test_a_changed_bundle_is_refused_without_a_signature(
    folder: Path, change: Callable[[Path], object]
) -> None:
    (folder / "out" / "certificate.dsse.json").unlink()
    target = unpacked(folder)
    assert command.main([str(target)]) == 0
    change(target)
    assert command.main([str(target)]) == 2


def test_another_signer_is_refused(folder: Path) -> None:
    run("keys", "new", "other.pem", cwd=folder)
    target = unpacked(folder, "--sign", "other.pem")
    assert check(target) == 2
    both = [str(target), "--key", str(folder / "key.pub"), "--key", str(folder / "other.pub")]
    assert command.main(both) == 0


def oracle(folder: Path, column: str, decisions: str) -> dict[str, tuple[int, int]]:
    """Count people and selected people by category, from two tables of the audit."""
    counts: dict[str, tuple[int, int]] = {}
    people, verdicts = rows_of(folder / "people.csv"), rows_of(folder / "out" / "verdicts.csv")
    for person, verdict in zip(people, verdicts, strict=True):
        count, selected = counts.get(person[column], (0, 0))
        chosen = verdict[decisions] == "favorable"
        counts[person[column]] = count + 1, selected + chosen
    return counts


@pytest.mark.parametrize(
    ("decisions", "column"), [("model", "decision"), ("fair", "fair decision")]
)
def test_ratios_agree_with_the_tables_of_the_audit(
    folder: Path, decisions: str, column: str
) -> None:
    target = unpacked(folder, "--groups", "sex,race", "--data", "people.csv")
    lines = [row for row in rows_of(target / "ll144.csv") if row["decisions"] == decisions]
    for name in ("sex", "race"):
        expected = oracle(folder, name, column)
        unknown = expected.pop("", (0, 0))
        found = {row["category"]: row for row in lines if row["columns"] == name}
        assert found.pop("no decision")["people"] == "0"
        row = found.pop("unknown")
        assert (int(row["people"]), int(row["selected"])) == unknown
        assert found.keys() == expected.keys()
        highest = max(Fraction(selected, people) for people, selected in expected.values())
        for category, (people, selected) in expected.items():
            row = found[category]
            assert (int(row["people"]), int(row["selected"])) == (people, selected)
            ratio = Fraction(selected, people) / highest
            assert float(row["impact_ratio"]) == pytest.approx(float(ratio), abs=1e-6)
    assert {row["columns"] for row in lines} == {"sex", "race", "sex / race"}


def test_documents_state_facts_and_mark_gaps(folder: Path) -> None:
    target = unpacked(folder)
    card = (target / "model_card" / "README.md").read_text()
    annex, readme = (target / "annex_iv.md").read_text(), (target / "README.md").read_text()
    summary = json.loads((folder / "out" / "audit.json").read_bytes())["summary"]
    for text in (card, annex, readme):
        assert "To be filled in by the provider" in text
        assert not re.search(r"\bcompl(y|ies|iant|iance)\b", text, re.IGNORECASE)
        assert f"{summary['fair']} fair, {summary['unfair']} unfair" in text
    assert f"Accuracy of the model, on the audited people: {summary['accuracy']:.1%}." in annex
    assert "a signature; the files are not signed" in annex
    yaml = pytest.importorskip("yaml")
    metadata = yaml.safe_load(card.split("---\n")[1])
    (entry,) = metadata["model-index"]
    (result,) = entry["results"]
    assert result["task"] == {"type": "tabular-classification"}
    assert result["dataset"]["name"] == "people.csv"
    metrics = {metric["type"]: metric["value"] for metric in result["metrics"]}
    assert metrics["ce_rate"] == summary["ce_rate"]
    assert metrics["accuracy"] == summary["accuracy"]
    rows = rows_of(target / "ll144.csv")
    lowest = min(
        float(row["impact_ratio"]) for row in rows
        if row["decisions"] == "model" and "/" not in row["columns"] and row["impact_ratio"]
    )  # fmt: skip
    assert metrics["impact_ratio"] == pytest.approx(lowest, abs=1e-6)


def test_names_are_no_markup(tmp_path: Path) -> None:
    space = feta.FeatureSpace(
        (
            feta.Categorical("a|<b>\n*", ("=x", "`y`"), sensitive=True),
            feta.Real("income", 0, 100),
        )
    )
    network = feta.Network.from_layers([([[1.0, -1.0, 0.0]], [0.0])])
    feta.save_model(feta.Model(space, network, threshold=0.0), tmp_path / "loan.feta")
    with (tmp_path / "people.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([["a|<b>\n*", "income"], ["=x", 1], ["`y`", 2]])
    assert run(*AUDIT, cwd=tmp_path).returncode == 1
    target = unpacked(tmp_path)
    for name in ("README.md", "annex_iv.md", "model_card/README.md"):
        text = (target / name).read_text().split("---\n")[-1]
        assert "a&#124;&#60;b&#62;" in text
        assert not {"<b>", "`y`"} & set(re.findall(r"<b>|`y`", text))
    assert rows_of(target / "ll144.csv")[0]["category"] == "'=x"


def test_the_model_can_be_left_out(folder: Path) -> None:
    target = unpacked(folder, "--without-model")
    assert not (target / "audit" / "model.feta").exists()
    assert "python3 -m feta_check . --model MODEL\n" in (target / "README.md").read_text()
    assert command.main([str(target), "--model", str(folder / "out" / "model.feta")]) == 3
    assert check(target) == 2  # the manifest is not signed


def model_of(kind: str) -> feta.Model:
    if kind == "regression":
        network = feta.Network.from_layers([([[0.1, 1.0, 0.0, 0.0]], [0.0])])
        return feta.Model(SPACE, network, feta.Tolerance(0.5))
    weight = [[0.125, 0.0, 0.0, 0.0], [0.0, 5.5, 6.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    network = feta.Network.from_layers([(weight, [0.0, 0.0, 0.0])])
    return feta.Model(SPACE, network, feta.Argmax(("low", "middle", "high")))


def test_of_several_classes_one_must_be_named(tmp_path: Path) -> None:
    feta.save_model(model_of("classes"), tmp_path / "loan.feta")
    table(tmp_path)
    run(*AUDIT, cwd=tmp_path)
    done = run(*BUNDLE, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "no ll144.csv: several decisions are possible; name one with --selected" in done.stderr
    assert "ll144.csv" not in zipfile.ZipFile(tmp_path / "audit.zip").namelist()
    done = run(*BUNDLE, "--selected", "hihg", cwd=tmp_path)
    assert "unknown decision of --selected: got 'hihg'; expected one of" in done.stderr
    target = unpacked(tmp_path, "--selected", "low")
    row = next(r for r in rows_of(target / "ll144.csv") if r["category"] == "female")
    assert (row["people"], row["selected"]) == ("12", "6")  # age / 8 is at least 5.5


def test_scores_above_the_median_are_selected(tmp_path: Path) -> None:
    feta.save_model(model_of("regression"), tmp_path / "loan.feta")
    table(tmp_path)
    run(*AUDIT, cwd=tmp_path)
    done = run(*BUNDLE, "--selected", "x", cwd=tmp_path)
    assert "a regression makes no decisions: got --selected; omit it" in done.stderr
    target = unpacked(tmp_path)
    rows = rows_of(target / "ll144.csv")
    women, men = (next(r for r in rows if r["category"] == sex) for sex in ("female", "male"))
    # Scores: 2.8, 5, 5.5, 10 for women, 1.8, 4, 4.5, 9 for men; the median is 4.75.
    assert (women["selected"], men["selected"]) == ("9", "3")
    assert "moves the score by more than 0.5 in all" in (target / "annex_iv.md").read_text()


def no_certificate(folder: Path) -> None:
    (folder / "out" / "certificate.jsonl").unlink()


def other_counts(folder: Path) -> None:
    path = folder / "out" / "audit.json"
    content = json.loads(path.read_bytes())
    content["data_sha256"] = "0" * 64
    path.write_text(json.dumps(content))


def other_verdicts(folder: Path) -> None:
    run("audit", "loan.feta", "--data", "people.csv", "--out", "plain", cwd=folder)
    path = folder / "out" / "verdicts.csv"
    path.write_text(path.read_text().replace('"unfair"', '"fair"', 1))


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (no_certificate, (), "no certificate: got no certificate.jsonl"),
        (other_counts, (), "audit.json does not belong to the certificate: got another table"),
        (other_verdicts, (), "audit.json does not belong to the certificate: got verdicts.csv"),
        (lambda it: (it / "out" / "report.html").unlink(), (), "report.html: no such file"),
        (
            lambda it: shutil.copy(it / "key.pub", it / "out" / "model.feta"),
            (),
            "the model does not belong to the certificate",
        ),
        (None, ("--groups", "rcae"), "must have the column 'rcae'"),
        (None, ("--groups", "race", "--data", "loan.feta"), "--data is not the audited table"),
        (None, ("--groups", "rcae", "--data", "people.csv"), "did you mean 'race'"),
        (None, ("--out", "out/audit.zip"), "--out is in the folder of the audit"),
        (None, ("--sign", "key.pub"), "no private key"),
    ],
)
def test_what_does_not_fit_is_refused(
    folder: Path,
    change: Callable[[Path], object] | None,
    options: tuple[str, ...],
    message: str,
) -> None:
    if change is not None:
        change(folder)
    done = run(*BUNDLE, *options, cwd=folder)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (folder / "audit.zip").exists()


def test_a_column_with_many_texts_has_no_categories(folder: Path) -> None:
    lines = [f"{age},female,50,r{age}" for age in range(18, 80)]
    (folder / "people.csv").write_text("\n".join(["age,sex,income,race", *lines]) + "\n")
    run(*AUDIT, cwd=folder)
    done = run(*BUNDLE, "--groups", "race", "--data", "people.csv", cwd=folder)
    assert "column 'race' has 62 different texts; expected at most 50" in done.stderr
