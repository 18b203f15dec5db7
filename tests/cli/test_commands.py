import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import feta
from tests.bad_files import CSV, ROWS, SCHEMA, WEIGHTS, Folder, good_model, safetensors_layers
from tests.cli.commands import rows_of, run, run_process
from tests.extras import needs

ESCAPE = "\x1b[31m"
OVERRIDE = "\u202e"


def insensitive_model() -> bytes:
    """Return a model with zero weights on age and sex."""
    weight = WEIGHTS["W1"].copy()
    weight[:, :3] = 0.0
    return good_model(W1=weight).SerializeToString()


def test_exit_code_0_if_everybody_is_proved_fair(folder: Folder) -> None:
    done = run_process(*folder.model(insensitive_model()))
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        "Fair: each of the 4 people provably gets the same decision, whatever their age or sex."
        in done.stdout
    )
    assert {row["verdict"] for row in rows_of(folder.path / "out" / "verdicts.csv")} == {"fair"}


def test_exit_code_1_if_there_is_a_counterexample(folder: Folder) -> None:
    done = run_process(*folder.audit())
    assert (done.returncode, done.stderr) == (1, "")
    answer = "Unfair: 3 of 4 people (75.0%) have a counterpart with a different decision."
    assert answer in done.stdout
    assert "age 30 → 90" in done.stdout
    assert "refused → approved" in done.stdout


def test_exit_code_3_if_there_is_no_time(folder: Folder) -> None:
    done = run(*folder.audit("--seconds", "0", "--engine", "exhaustive"))
    assert (done.returncode, done.stderr) == (3, "")
    assert "Undecided: " in done.stdout
    assert "4 people are undecided: raise --seconds" in done.stdout


@needs("onnxruntime")
def test_json_on_standard_output_is_pure_and_equal_to_the_file(folder: Folder) -> None:
    done = run(*folder.audit("--json"))
    assert (done.returncode, done.stderr) == (1, "")
    content = json.loads(done.stdout)
    assert content == json.loads((folder.path / "out" / "audit.json").read_text(encoding="utf-8"))
    assert (content["format"], content["version"], content["partial"]) == ("feta-audit", 1, False)
    assert content["model"]["counterparts"] == 146
    assert content["summary"]["unfair"] == 3
    assert content["summary"]["pairs_not_replayed"] == 0
    assert {pair["replayed"] for pair in content["clearest_pairs"]} == {True}
    assert content["unanswered"] == []


def test_files_contain_every_row_and_every_pair(folder: Folder) -> None:
    run(*folder.audit())
    out = folder.path / "out"
    assert sorted(path.name for path in out.iterdir()) == [
        "audit.json",
        "pairs.csv",
        "report.html",
        "verdicts.csv",
    ]
    verdicts, pairs = rows_of(out / "verdicts.csv"), rows_of(out / "pairs.csv")
    assert [row["row"] for row in verdicts] == ["1", "2", "3", "4"]
    assert [row["row"] for row in pairs] == [
        row["row"] for row in verdicts if row["verdict"] == "unfair"
    ]
    model = feta.read_schema(folder.path / "schema.toml").model(
        feta.read_onnx(folder.path / "model.onnx")
    )
    for pair in pairs:
        shared = {"sex": pair["sex"], "income": float(pair["income"])}
        person = shared | {"age": int(pair["age"])}
        other = shared | {"age": int(pair["counterpart age"]), "sex": pair["counterpart sex"]}
        decisions = model.decide(model.space.encode([person, other]))
        outcomes = [pair["decision"], pair["counterpart decision"]]
        assert outcomes == [model.outcomes[int(decision)] for decision in decisions]
        assert decisions[0] != decisions[1]
        assert float(pair["gap"]) > 0


def test_labels_give_accuracies_and_ids_identify_people(folder: Folder) -> None:
    rows = [f"{row},p{n},{n % 2}" for n, row in enumerate(ROWS)]
    arguments = folder.table("age,sex,income,id,paid\n" + "\n".join(rows))
    done = run(*arguments, "--label", "paid", "--id", "id")
    assert done.returncode == 1
    assert "Accuracy: 75.0% now" in done.stdout
    assert "1 (p0)" in done.stdout
    assert [row["id"] for row in rows_of(folder.path / "out" / "pairs.csv")] == ["p0", "p1", "p2"]


def test_bad_rows_can_be_skipped_and_are_listed(folder: Folder) -> None:
    (folder.path / "model.onnx").write_bytes(insensitive_model())
    arguments = folder.table(f"age,sex,income\n{ROWS[0]}\n17,male,3\n30,male\n{ROWS[1]}\n")
    done = run(*arguments, "--skip-bad-rows")
    assert done.returncode == 3
    assert "2 rows could not be read and were not audited" in done.stdout
    verdicts = rows_of(folder.path / "out" / "verdicts.csv")
    assert [row["verdict"] for row in verdicts] == ["fair", "not audited", "not audited", "fair"]
    assert "'age' is invalid: got '17'; expected an integer from 18 to 90" in verdicts[1]["reason"]
    assert "wrong number of cells: got 2; expected 3, like the header" in verdicts[2]["reason"]
    content = json.loads((folder.path / "out" / "audit.json").read_text(encoding="utf-8"))
    assert [row["row"] for row in content["unanswered"]] == [2, 3]
    assert content["summary"]["people"] == 2
    page = (folder.path / "out" / "report.html").read_text(encoding="utf-8")
    assert "about every row of data.csv that could be read." in page
    kinds = ("'age': below the minimum 18 (row 2)", "the row: wrong number of cells (row 3)")
    for kind in kinds:
        assert f"not read: {kind}" in done.stdout
        assert kind.replace("'", "&#39;") in page
    assert content["bad_rows"][0] == {
        "column": "age",
        "reason": "below the minimum 18",
        "rows": 1,
        "first_row": 2,
    }
    markdown = run(*arguments, "--skip-bad-rows", "--format", "md")
    assert f"- Not read: {kinds[0]}" in markdown.stdout


def test_init_notes_unusual_columns_and_can_strip_blanks(folder: Folder) -> None:
    table = folder.path / "odd.csv"
    table.write_text("age,sex,income\n30, male,1\n31,male,1\n-1,female,1\n")
    files = [str(folder.path / "model.onnx"), str(table), "--sensitive", "age,sex"]
    done = run("init", *files, "--out", str(folder.path / "odd.toml"))
    assert done.returncode == 0, done.stderr
    for note in (
        "'sex': '␠male', 'male' differ only in blanks; each is a separate value with its own vote",
        "'age' has the minimum -1, which looks impossible, and would become a counterpart",
        "'income' is constant: every row has 1",
    ):
        assert note in done.stderr
    done = run("init", *files, "--strip", "--out", str(folder.path / "stripped.toml"))
    assert "differ only in" not in done.stderr
    assert feta.read_schema(folder.path / "stripped.toml").space.attribute("sex").values == (  # type: ignore[union-attr]  # a category
        "female",
        "male",
    )


def test_all_kinds_of_problems_of_a_table_are_reported_at_once(folder: Folder) -> None:
    rows = [ROWS[0], "17,male,3", "30,male", "16,mle,3", *ROWS * 3000, "30,male,much"]
    arguments = folder.table("age,sex,income\n" + "\n".join(rows))
    kinds = ["'income': not a number: 'much' (row 12,005)"]
    for command, count, further_kinds in (
        (arguments, 4, ["'age': below the minimum 18 (2 rows, the first is row 2)"]),
        (["predict", *arguments[1:-2]], 2, []),  # sensitive cells are not read
    ):
        done = run(*command)
        assert (done.returncode, done.stdout) == (2, "")
        first, *notes = done.stderr.splitlines()
        assert first.startswith("feta: ")
        assert f"    {count} rows of the table cannot be read, by column and reason:" in notes
        for kind in [*kinds, *further_kinds, "the row: wrong number of cells (row 3)"]:
            assert f"    - {kind}" in notes


def test_a_counterexample_has_precedence_over_a_skipped_row(folder: Folder) -> None:
    assert run(*folder.row("17,male,3"), "--skip-bad-rows").returncode == 1


def predicted(folder: Folder, table: str, *options: str) -> list[str]:
    arguments = folder.table(table)
    done = run("predict", *arguments[1:-2], *options)
    assert done.returncode == 0, done.stderr
    return [row["decision"] for row in csv.DictReader(done.stdout.splitlines())]


def test_fair_decisions_never_read_the_sensitive_cells(folder: Folder) -> None:
    incomes = [50, 12.5, 0, 99, 100, 75]
    complete = "".join(f"30,female,{income}\n" for income in incomes)
    without_sensitive = "".join(f"{income}\n" for income in incomes)
    garbage = "".join(f'"\x1b\u202e,{n}",=1+1,{income}\n' for n, income in enumerate(incomes))
    decisions = predicted(folder, "age,sex,income\n" + complete)
    assert decisions == predicted(folder, "income\n" + without_sensitive)
    assert decisions == predicted(folder, "age,sex,income\n" + garbage)
    assert set(decisions) == {"approved", "refused"}


def test_fair_decisions_go_to_a_file_as_json_lines_with_ids(folder: Folder) -> None:
    arguments = folder.table("income,name\n50,ann\n99,bob\n")
    out = folder.path / "decisions.jsonl"
    done = run("predict", *arguments[1:-1], str(out), "--json", "--id", "name")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"Wrote {out}: 2 approved.\n")
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [sorted(line) for line in lines] == [["decision", "id", "row"]] * 2
    assert [line["id"] for line in lines] == ["ann", "bob"]


def test_exit_code_3_if_a_fair_decision_is_undecided(folder: Folder) -> None:
    done = run("predict", *folder.audit()[1:-2], "--seconds", "0", "--engine", "exhaustive")
    assert done.returncode == 3
    assert done.stdout.count("undecided") == 4


def test_an_interrupted_audit_keeps_its_results_and_labels_them(folder: Folder) -> None:
    arguments = folder.table("age,sex,income\n" + "\n".join(ROWS * 100_000))
    process = subprocess.Popen(
        [sys.executable, "-m", "feta", *arguments, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell starts a background job with the signal ignored, which its children would inherit.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no threads here
    )
    out = folder.path / "out"
    while not any(part.stat().st_size for part in out.glob(".verdicts.csv.*.part")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    content = json.loads(stdout)
    assert content["partial"] is True
    assert 0 < content["summary"]["people"] < 400_000
    assert sorted(path.name for path in out.iterdir()) == [
        "audit.json",
        "journal.sqlite",
        "pairs.csv",
        "report.html",
        "verdicts.csv",
    ]
    assert len(rows_of(out / "verdicts.csv")) == content["summary"]["people"]


def test_an_inferred_schema_can_be_audited(folder: Folder) -> None:
    (folder.path / "data.csv").write_text(CSV.replace("\n", ",p\n").replace("e,p", "e,id", 1))
    schema_file = folder.path / "guessed.toml"
    files = [str(folder.path / name) for name in ("model.onnx", "data.csv")]
    arguments = ["--sensitive", "age, sex", "--leave-out", "id", "--out", str(schema_file)]
    done = run("init", *files, *arguments)
    assert (done.returncode, done.stdout) == (0, "")
    assert "3 columns, 4 network inputs" in done.stderr
    assert "Everybody has 146 counterparts." in done.stderr
    schema = feta.read_schema(schema_file)
    assert [attribute.name for attribute in schema.space.sensitive] == ["age", "sex"]
    done = run("audit", files[0], "--schema", str(schema_file), "--data", files[1])
    assert done.returncode in (0, 1)
    assert done.stderr == "note: 1 column is not in the schema and ignored: id\n"


def test_a_repeated_option_adds_to_the_sensitive_columns(folder: Folder) -> None:
    files = [str(folder.path / name) for name in ("model.onnx", "data.csv")]
    out = folder.path / "guessed.toml"
    repeated = ["--sensitive", "age", "--sensitive", "sex", "--out", str(out)]
    done = run("init", *files, *repeated)
    assert done.returncode == 0, done.stderr
    assert [a.name for a in feta.read_schema(out).space.sensitive] == ["age", "sex"]


def test_an_inferred_schema_that_does_not_fit_the_network_is_noted(folder: Folder) -> None:
    files = [str(folder.path / name) for name in ("model.onnx", "data.csv")]
    out = str(folder.path / "guessed.toml")
    done = run("init", *files, "--sensitive", "sex", "--leave-out", "age", "--out", out)
    assert done.returncode == 0
    assert "The network has 4 inputs, not 3" in done.stderr


WITHOUT_KERNEL = """
import sys
sys.modules["feta._native"] = None
from feta.cli.entry import main
main()
"""


def without_kernel(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command as if the package had been installed without a compiler."""
    command = [sys.executable, "-c", WITHOUT_KERNEL, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def test_a_missing_kernel_is_reported_with_its_cost_and_remedy(folder: Folder) -> None:
    warning = (
        "FETA's compiled kernel is missing: results are still exact, but finite "
        "lattices are about 6 "
    )
    engines = without_kernel("engines")
    assert (engines.returncode, engines.stderr) == (0, "")
    assert warning in engines.stdout
    assert "pip install --force-reinstall" in engines.stdout
    assert json.loads(without_kernel("engines", "--json").stdout)["kernel"] == {"installed": False}
    assert json.loads(run("engines", "--json").stdout)["kernel"] == {"installed": True}
    model, schema = str(folder.path / "model.onnx"), str(folder.path / "schema.toml")
    doctor = without_kernel("doctor", model, "--schema", schema)
    assert doctor.returncode == 0, doctor.stderr
    assert warning in doctor.stdout
    audit = without_kernel(*folder.audit())
    assert audit.returncode == run(*folder.audit()).returncode
    assert audit.stderr.count(f"feta: warning: {warning}") == 1


def test_engines_are_listed_for_machines() -> None:
    done = run("engines", "--json")
    content = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert "exhaustive" in content["engines"]
    assert "tally on finite ones" in content["engines"]["milp"]
    assert content["packages"]["scikit-learn"] is True
    optional = {"distributed", "h5py", "onnxruntime", "pyarrow", "skops", "torch"}
    assert set(content["packages"]) == {*optional, "scikit-learn"}
    assert "exhaustive" in run("engines").stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--engine", "exhaustiv"], "unknown engine: got 'exhaustiv'; expected one of 'auto', "),
        (["--engine", "exhaustiv"], "; did you mean 'exhaustive'?"),
        (["--seconds", "-1"], "invalid budget of seconds: got -1.0; expected a finite number"),
        (["--seconds", "soon"], "Invalid value for '--seconds'"),
        (["--secnds", "1"], "No such option: --secnds"),
        (["--label", "paid"], "the table must have the column 'paid'"),
        (
            ["--id", "ag"],
            "the table must have the column 'ag'; it has 'age', 'sex', 'income'; did "
            "you mean 'age'?",
        ),
    ],
)
def test_a_wrong_option_is_reported_in_one_line(
    folder: Folder, options: list[str], message: str
) -> None:
    done = run(*folder.audit(*options))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("feta: ")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
    assert not (folder.path / "out").exists()


def test_a_command_without_arguments_shows_its_usage() -> None:
    done = run()
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: feta")
    assert (
        run("audit").stderr
        == "feta: Missing option '--data'; feta audit --help lists all options\n"
    )


def test_a_closed_pipe_ends_a_command_without_a_message(folder: Folder) -> None:
    folder.table("income\n" + "50\n" * 50_000)
    arguments = ["predict", *folder.audit()[1:-2]]
    process = subprocess.Popen(
        [sys.executable, "-m", "feta", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b'"row","decision"\r\n'
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=600) == 141  # not 130, the exit code of Ctrl-C


def test_predict_states_what_it_wrote(folder: Folder) -> None:
    arguments = ["predict", *folder.audit()[1:-2]]
    decisions = [row["decision"] for row in csv.DictReader(run(*arguments).stdout.splitlines())]
    out = folder.path / "decisions.csv"
    done = run(*arguments, "--out", str(out))
    counts = [f"{decisions.count(name)} {name}" for name in sorted(set(decisions))]
    last = done.stderr.splitlines()[-1]
    assert (done.returncode, done.stdout) == (0, "")
    assert last.startswith(f"Wrote {out}: ")
    assert sorted(last.removeprefix(f"Wrote {out}: ").removesuffix(".").split(", ")) == sorted(
        counts
    )


def test_an_audit_names_the_audit_of_another_model_that_it_replaces(folder: Folder) -> None:
    words = "note: replaced an audit of model.onnx on data.csv, which was in "
    assert words not in run(*folder.audit()).stderr
    assert words not in run(*folder.audit()).stderr  # the same question
    schema = SCHEMA.replace("threshold = 0.5", "threshold = 0.6")
    (folder.path / "schema.toml").write_text(schema)
    assert words in run(*folder.audit()).stderr


@pytest.mark.parametrize("closed", ["stderr", "both"])
def test_a_closed_stderr_keeps_the_exit_code_of_bad_input(folder: Folder, closed: str) -> None:
    folder.table("income\n" + "fifty\n")
    reader, writer = os.pipe()
    os.close(reader)  # as in `feta … 2>&1 | head -0`
    process = subprocess.Popen(
        [sys.executable, "-m", "feta", *folder.audit()],
        stdout=writer if closed == "both" else subprocess.DEVNULL,
        stderr=writer,
    )
    os.close(writer)
    assert process.wait(timeout=600) in (2, 141)  # 1 would mean a counterexample


def figures(folder: Folder) -> object:
    return json.loads((folder.path / "out" / "audit.json").read_text(encoding="utf-8"))["summary"]


@needs("pyarrow")
def test_parquet_gives_the_same_answers_as_csv(folder: Folder) -> None:
    first = run(*folder.audit())
    expected = figures(folder)
    pd.read_csv(folder.path / "data.csv").to_parquet(folder.path / "data.parquet")
    second = run(*folder.audit(data="data.parquet"))
    assert (second.returncode, second.stdout) == (first.returncode, first.stdout)
    assert figures(folder) == expected


def test_a_saved_model_needs_no_schema(folder: Folder) -> None:
    run(*folder.audit())
    expected = figures(folder)
    network = feta.read_onnx(folder.path / "model.onnx")
    model = feta.read_schema(folder.path / "schema.toml").model(network)
    feta.save_model(model, folder.path / "model.feta")
    done = run(*folder.audit(model="model.feta"))
    assert done.returncode == 1
    assert figures(folder) == expected
    schema = ["--schema", str(folder.path / "schema.toml")]
    refused = run(*folder.audit(*schema, model="model.feta"))
    assert (refused.returncode, "contains its schema; remove --schema" in refused.stderr) == (
        2,
        True,
    )
    files = [str(folder.path / name) for name in ("model.feta", "data.csv")]
    assert (
        "the file already contains a schema; run feta audit"
        in run("init", *files, "--sensitive", "age").stderr
    )


def test_stored_layers_are_audited_by_name(folder: Folder) -> None:
    done = run(*folder.file("model.safetensors", safetensors_layers(), "--layers", "fc1, out"))
    assert done.returncode == 1


def test_a_table_with_semicolons_blank_lines_and_empty_columns_is_read(folder: Folder) -> None:
    lines = [
        "\ufeffid;sex;age;income;;",
        "",
        *(f'"p;{n}";"female";{30 + n};12.5;;' for n in range(3)),
    ]
    arguments = folder.table("\r\n".join([*lines, "", ""]))
    done = run(*arguments, "--id", "id")
    assert (done.returncode, done.stderr) == (1, "")
    assert [row["id"] for row in rows_of(folder.path / "out" / "verdicts.csv")] == [
        "p;0",
        "p;1",
        "p;2",
    ]


HOSTILE = [
    f"{ESCAPE}red",
    f"{OVERRIDE}evil",
    "[red]x[/]",
    "=1+1",
    "@SUM(A1)",
    "a\nb",
    "[/]",
    "\x9b31m",
]


def audit_hostile_names(folder: Folder) -> list[str]:
    """Return the command for columns, values, ids, outcomes and a file with hostile names."""
    values = json.dumps(HOSTILE[:2])
    schema = SCHEMA.replace('["female", "male"]', values).replace(
        "sex =", json.dumps(HOSTILE[2]) + " ="
    )
    schema = schema.replace("age =", json.dumps(HOSTILE[3]) + " =")
    schema = schema.replace('"approved"', json.dumps(HOSTILE[4])).replace(
        '"refused"', json.dumps(HOSTILE[0])
    )
    (folder.path / "schema.toml").write_text(schema, encoding="utf-8")
    name = "[red]d[].csv"
    with (folder.path / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([HOSTILE[3], HOSTILE[2], "income", HOSTILE[5], HOSTILE[0]])
        for n in range(8):
            writer.writerow([18 + n, HOSTILE[n % 2], 50, HOSTILE[n], 1])
    return folder.audit("--id", HOSTILE[5], data=name)


def harmless(text: str) -> bool:
    return all(character.isprintable() or character in "\r\n" for character in text)


def test_untrusted_text_is_escaped_on_the_terminal_and_in_files(folder: Folder) -> None:
    arguments = audit_hostile_names(folder)
    done = run(*arguments)
    assert done.returncode == 1, done.stderr
    assert harmless(done.stdout)
    assert harmless(done.stderr)
    assert "[red]x[/]" in done.stdout
    assert r"\x1b[31mred" in done.stdout
    for path in (folder.path / "out").iterdir():
        assert harmless(path.read_text(encoding="utf-8")), path
    assert r"\u202eevil" in (folder.path / "out" / "pairs.csv").read_text(encoding="utf-8")
    for name in ("pairs.csv", "verdicts.csv"):
        with (folder.path / "out" / name).open(encoding="utf-8", newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        assert "'=1+1" in cells
        for cell in cells:
            assert not cell.startswith(("=", "@", "\t"))
            assert not cell.startswith(("+", "-")) or np.isfinite(float(cell))
    output = run(*arguments, "--json").stdout
    assert harmless(output)
    assert json.loads(output)["model"]["outcomes"] == [HOSTILE[0], HOSTILE[4]]


def test_untrusted_text_is_escaped_in_fair_decisions_and_inferred_schemas(folder: Folder) -> None:
    arguments = audit_hostile_names(folder)
    done = run("predict", *arguments[1:-4], "--id", HOSTILE[5])
    assert done.returncode == 0, done.stderr
    assert harmless(done.stdout + done.stderr)
    assert '"\'=1+1"' in done.stdout
    data, out = arguments[5], str(folder.path / "guessed.toml")
    names = ["--sensitive", HOSTILE[3], "--leave-out", f"{HOSTILE[5]},{HOSTILE[0]}", "--out", out]
    done = run("init", arguments[1], data, *names)
    assert done.returncode == 0, done.stderr
    assert harmless(done.stderr)
    assert harmless(Path(out).read_text(encoding="utf-8"))
    assert feta.read_schema(out).space.attributes[1].name == "[red]x[/]"


def test_engines_lists_solvers_versions_and_limits() -> None:
    solvers = json.loads(run("engines", "--json").stdout)["solvers"]
    assert solvers["milp"]["solver"] == "HiGHS"
    assert solvers["milp"]["version"]
    assert "2,000 variables" in solvers["milp:gurobi"]["limits"]
    assert "SCIP" in run("engines").stdout
