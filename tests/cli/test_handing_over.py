import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import feta
from feta.auditing.finding import Finding
from feta.cli.audit_files import AuditFiles
from tests.bad_files import ROWS, Folder
from tests.cli.test_commands import insensitive_model, rows_of, run
from tests.extras import needs


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder.filled(tmp_path)


@needs("onnxruntime")
def test_report_contains_the_command_that_repeats_it(folder: Folder) -> None:
    run(*folder.audit("--seconds", "5"))
    page = (folder.path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Unfair: 3 of 4 people have a counterpart with a different decision" in page
    command = "feta audit model.onnx --data data.csv --schema schema.toml --seconds 5.0 --out out"
    assert command in page
    assert "Replayed in onnxruntime" in page


@pytest.mark.parametrize(
    ("name", "first"), [("md", "# Fairness"), ("junit", "<?xml"), ("json", "{")]
)
def test_formats_are_pure_on_standard_output(folder: Folder, name: str, first: str) -> None:
    done = run(*folder.audit("--format", name))
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith(first)
    if name == "junit":
        suite = ET.fromstring(done.stdout)
        assert suite.attrib | {"name": ""} == {
            "name": "",
            "tests": "4",
            "failures": "2",
            "errors": "0",
        }


def test_undecided_people_are_errors_in_junit(folder: Folder) -> None:
    done = run(*folder.audit("--format", "junit", "--seconds", "0", "--engine", "exhaustive"))
    suite = ET.fromstring(done.stdout)
    assert (suite.get("failures"), suite.get("errors")) == ("0", "1")


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


def test_an_audit_is_resumed_and_refuses_another_model(folder: Folder) -> None:
    arguments = folder.table("age,sex,income\n" + "\n".join([*ROWS[3:] * 30, "17,female,1"]) + "\n")
    refused = run(*arguments)
    assert refused.returncode == 2  # the last row is bad
    assert not (folder.path / "out").exists()
    (folder.path / "data.csv").write_text(
        "age,sex,income\n" + "\n".join([*ROWS[3:] * 4400, "17,female,1"])
    )
    refused = run(*arguments)  # the second chunk is bad; the first is done
    assert refused.returncode == 2
    assert "row 4401: 'age' is invalid" in refused.stderr
    journal = folder.path / "out" / "journal.sqlite"
    assert journal.exists()
    changed = run(*folder.model(insensitive_model()))
    assert changed.returncode == 2
    assert "is the journal of another audit: the model was" in changed.stderr
    folder = Folder.filled(folder.path)
    resumed = run(*folder.table("age,sex,income\n" + "\n".join(ROWS[3:] * 4400)))
    assert resumed.returncode == 0
    assert "resuming with 1 people known from" in resumed.stderr  # equal people are one
    assert len(rows_of(folder.path / "out" / "verdicts.csv")) == 4400
    assert not journal.exists()


def slow_audit(folder: Path, bias: float = 0.0) -> list[str]:
    """Return the command of an audit in which one person takes minutes."""
    space = feta.FeatureSpace(
        (
            *(feta.Integer(f"s{n}", 0, 999, sensitive=True) for n in range(3)),
            feta.Real("income", 0, 9),
        )
    )
    rng = np.random.default_rng(0)
    layers = [
        (rng.normal(size=(16, 4)), np.zeros(16)),
        (rng.normal(size=(1, 16)), np.array([bias])),
    ]
    feta.save_model(
        feta.Model(space, feta.Network.from_layers(layers, activation="relu")), folder / "m.feta"
    )
    (folder / "d.csv").write_text("s0,s1,s2,income\n" + "1,2,3,4\n" * 3)
    files = [str(folder / "m.feta"), "--data", str(folder / "d.csv"), "--out", str(folder / "out")]
    return [sys.executable, "-m", "feta", "audit", *files, "--engine", "exhaustive"]


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_an_audit_in_the_middle_of_a_person(
    tmp_path: Path, number: signal.Signals, jobs: str
) -> None:
    process = subprocess.Popen(
        [*slow_audit(tmp_path), "--jobs", jobs, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no threads here
    )
    while not (tmp_path / "out" / "journal.sqlite").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    time.sleep(1.5)  # in the middle of the first person, who takes minutes
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=600)  # only against hanging
    assert (process.returncode, stderr) == (130, "")
    content = json.loads(stdout)
    assert (content["partial"], content["summary"]["people"]) == (True, 0)  # no person was finished
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Interrupted: these are partial results" in page


def test_a_full_disk_ends_an_audit_and_keeps_its_results(folder: Folder) -> None:
    rows = [f"{18 + n % 73},{('female', 'male')[n % 2]},{n / 100}" for n in range(1500)]
    arguments = folder.table("age,sex,income\n" + "\n".join(rows))

    def small_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))

    full = subprocess.run(
        [sys.executable, "-m", "feta", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        preexec_fn=small_files,
        env={**os.environ, "COLUMNS": "160"},
    )
    assert full.returncode == 2
    assert "Traceback" not in full.stderr
    assert "the journal cannot be written" in full.stderr
    assert "what is done is kept: make room, and run the same command again" in full.stderr
    out = folder.path / "out"
    assert not list(out.glob("*.part"))
    assert not (out / "verdicts.csv").exists()
    resumed = run(*arguments)
    assert resumed.returncode == 1
    assert "people known from" in resumed.stderr
    assert len(rows_of(out / "verdicts.csv")) == 1500


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a file that is always full")
def test_a_disk_that_fills_between_two_rows_is_reported_and_leaves_no_parts(tmp_path: Path) -> None:
    space = feta.FeatureSpace((feta.Integer("age", 18, 90, sensitive=True), feta.Real("pay", 0, 9)))
    model = feta.Model(space, feta.Network.from_layers([([[0.1, 1.0]], [-5.0])]))
    files = AuditFiles(tmp_path, model)

    def fill_up() -> None:
        with files:
            files.streams["verdicts.csv"].close()
            files.streams["verdicts.csv"] = Path("/dev/full").open("w", encoding="utf-8")  # noqa: SIM115 - the files close it
            for row in range(10_000):
                files.write(Finding(row, "undecided", reason="late"), "")

    with pytest.raises(
        OSError, match="No space left on device; finished rows are kept: free some"
    ) as raised:
        fill_up()
    assert raised.value.filename == str(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_person_gets_no_more_time_than_the_limit(tmp_path: Path) -> None:
    command = [*slow_audit(tmp_path, bias=1e9), "--seconds", "0.5"]  # everybody is fair, slowly
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 3  # without a limit: minutes per person, then 0
    verdicts = rows_of(tmp_path / "out" / "verdicts.csv")
    assert [row["verdict"] for row in verdicts] == ["undecided"] * 3
    assert all(row["reason"] for row in verdicts)


def children(process: int) -> list[int]:
    """Return a process's children, which Linux lists in /proc."""
    content = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii")
    return [int(child) for child in content.split()]


def is_spawned(process: int) -> bool:
    try:
        return "spawn_main" in Path(f"/proc/{process}/cmdline").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False


def has_journal_entries(out: Path) -> bool:
    """Return whether the journal contains answers; its first write is only its header."""
    return sum(path.stat().st_size for path in out.glob("journal.sqlite*")) > 60_000


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are found in /proc")
def test_an_audit_survives_a_worker_s_death(folder: Folder) -> None:
    rows = [f"{18 + n % 73},{('female', 'male')[n % 2]},{n / 100}" for n in range(1500)]
    arguments = [*folder.table("age,sex,income\n" + "\n".join(rows)), "--engine", "exhaustive"]
    run(*arguments)
    out, expected = folder.path / "out", folder.path / "due"
    out.rename(expected)
    command = [sys.executable, "-m", "feta", *arguments, "--jobs", "2"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    killed = False
    while process.poll() is None and not killed:
        workers = [child for child in children(process.pid) if is_spawned(child)]
        if workers and has_journal_entries(out):
            os.kill(workers[-1], signal.SIGKILL)
            killed = True
        time.sleep(0.02)
    output, _ = process.communicate(timeout=600)
    assert (process.returncode, killed) == (1, True), output
    for name in ("verdicts.csv", "pairs.csv"):
        assert (out / name).read_text() == (expected / name).read_text()


@pytest.mark.parametrize("engine", ["exhaustive", "lattice"])
def test_a_second_interruption_ends_the_process_with_130(tmp_path: Path, engine: str) -> None:
    process = subprocess.Popen(
        [*slow_audit(tmp_path)[:-1], engine],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no threads here
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "out" / "journal.sqlite").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    while process.poll() is None:  # signals arrive at every stage of the exit
        process.send_signal(signal.SIGINT)
        time.sleep(0.003)
    assert process.stderr is not None
    with process.stderr as stderr:
        assert "Traceback" not in stderr.read()
    assert process.returncode == 130
