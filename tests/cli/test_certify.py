import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import feta
from tests.cli.commands import run
from tests.examples import SPACE, linear

ROWS = [{"age": age, "sex": "female", "income": 50} for age in (18, 40, 90)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    feta.save_model(linear(age=0.1, bias=-5.0), tmp_path / "loan.feta")
    lines = [
        f"p{index},{row['age']},{row['sex']},{row['income']}" for index, row in enumerate(ROWS)
    ]
    (tmp_path / "people.csv").write_text("\n".join(["id,age,sex,income", *lines]) + "\n")
    return tmp_path


AUDIT = ("audit", "loan.feta", "--data", "people.csv", "--id", "id", "--out", "out", "--certify")


def claims(folder: Path) -> list[dict[str, object]]:
    lines = (folder / "out" / "certificate.jsonl").read_bytes().splitlines()[1:-1]
    return [{**json.loads(line), "salt": ""} for line in lines]


def test_a_certificate_is_written_and_re_proved(folder: Path) -> None:
    audited = run(*AUDIT, cwd=folder)
    assert audited.returncode == 1
    assert "audit.json, certificate.jsonl\nRe-check the certificate with: feta check out" in (
        audited.stdout
    )
    assert [claim["id"] for claim in claims(folder)] == ["p0", "p1", "p2"]
    done = subprocess.run(
        [sys.executable, "-m", "feta", "check", "out"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("row 1 (p0): re-proved: unfair\n")
    assert done.stdout.endswith("Every claim was re-proved.\n")
    result = feta.check(folder / "out")
    assert result == feta.CheckResult(3, 0, 0, result.root)
    assert result.all_proved


def test_workers_write_the_same_claims(folder: Path) -> None:
    run(*AUDIT, cwd=folder)
    expected = claims(folder)
    run(*AUDIT, "--jobs", "2", cwd=folder)
    assert claims(folder) == expected


PEOPLE = [f"q{n},{18 + n % 73},{('female', 'male')[n % 2]},{n % 90 + n / 64}" for n in range(60)]

# A command that dies when the certificate is written.
KILLED = """
import os, signal, sys
from feta.auditing.certify import Certification
from feta.cli.run_command import main
setattr(Certification, sys.argv.pop(1), lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
main()
"""


def write_people(folder: Path, rows: list[str]) -> None:
    (folder / "people.csv").write_text("\n".join(["id,age,sex,income", *rows]) + "\n")


KILLS = [("write", "1"), ("seal", "1"), ("publish", "1"), ("publish", "2")]


@pytest.mark.parametrize(("step", "jobs"), KILLS)
def test_a_killed_audit_certifies_the_same_claims(folder: Path, step: str, jobs: str) -> None:
    write_people(folder, PEOPLE)
    run(*AUDIT, cwd=folder)
    expected = claims(folder)
    shutil.rmtree(folder / "out")
    command = [sys.executable, "-c", KILLED, step, *AUDIT, "--jobs", jobs]
    killed = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not (folder / "out" / "certificate.jsonl").exists()
    resumed = run(*AUDIT, "--jobs", jobs, cwd=folder)
    assert step == "write" or "resuming with 60 people known from" in resumed.stderr
    assert claims(folder) == expected
    names = {path.name for path in (folder / "out").iterdir() if "journal" not in path.name}
    assert not [name for name in names if name.startswith(".") and name.endswith(".part")]
    assert feta.check(folder / "out").all_proved


def test_a_later_audit_without_certificate_removes_it(folder: Path) -> None:
    run(*AUDIT, cwd=folder)
    run(*AUDIT[:-1], cwd=folder)
    assert not (folder / "out" / "certificate.jsonl").exists()


def test_the_model_can_be_left_out(folder: Path) -> None:
    run(*AUDIT, "--without-model", cwd=folder)
    assert not (folder / "out" / "model.feta").exists()
    assert feta.check(folder / "out").not_checked == 3
    run("export", "loan.feta", "--out", "exported.feta", cwd=folder)
    assert feta.check(folder / "out", model=folder / "exported.feta").all_proved


def test_a_model_in_the_folder_is_not_removed(folder: Path) -> None:
    run(*AUDIT, cwd=folder)
    done = run(*AUDIT, "--without-model", cwd=folder)
    assert done.returncode == 2
    assert "a model is in the folder of a certificate without one" in done.stderr
    assert (folder / "out" / "model.feta").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--certify",), "--certify needs a folder: got no --out; add --out FOLDER"),
        (("--without-model", "--out", "out"), "--without-model needs --certify; add it, or omit"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = run("audit", "loan.feta", "--data", "people.csv", *arguments, cwd=folder)
    assert done.returncode == 2
    assert message in done.stderr


def test_an_input_is_not_overwritten(folder: Path) -> None:
    (folder / "loan.feta").rename(folder / "model.feta")
    done = run("audit", "model.feta", "--data", "people.csv", "--out", ".", "--certify", cwd=folder)
    assert done.returncode == 2
    assert "--out is an input of this command" in done.stderr


def test_a_counted_model_is_recorded_and_not_proved(folder: Path) -> None:
    (folder / "certified_function.py").write_text(
        "def good(rows):\n    return (rows['age'] > 40).to_numpy()\n"
    )
    schema = "[columns.age]\ntype = 'integer'\nmin = 18\nmax = 90\nsensitive = true\n"
    (folder / "schema.toml").write_text(schema)
    command = (
        "audit",
        "--predict",
        "certified_function:good",
        "--schema",
        "schema.toml",
        *AUDIT[2:],
    )
    done = run(*command, cwd=folder)
    assert done.returncode == 1, done.stderr
    assert not (folder / "out" / "model.feta").exists()
    assert feta.check(folder / "out").not_checked == 3


def test_the_python_interface_writes_a_certificate(tmp_path: Path) -> None:
    audit = feta.audit(linear(age=0.1, bias=-5.0), ROWS, certify=True)
    audit.write(tmp_path / "audit")
    assert (tmp_path / "audit" / "report.html").exists()
    assert feta.check(tmp_path / "audit").all_proved
    feta.audit(linear(), ROWS).write(tmp_path / "plain")
    assert not (tmp_path / "plain" / "certificate.jsonl").exists()
    assert SPACE.sensitive


def test_a_damaged_certificate_is_an_error(tmp_path: Path) -> None:
    feta.audit(linear(), ROWS, certify=True).write(tmp_path)
    path = tmp_path / "certificate.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(feta.SchemaError, match="the certificate cannot be checked: got 'the cert"):
        feta.check(tmp_path)
