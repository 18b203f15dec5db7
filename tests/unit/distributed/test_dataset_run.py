"""Runs over parts, with a cluster that is this process."""

import json
import os
import resource
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feta
from feta import Model, Network
from feta.cli import on_cluster
from feta.distributed import dataset
from feta.distributed.cluster import WorkersDied
from feta.distributed.dataset import Part, parts_of, result_name
from feta.io.certificate_file import CERTIFICATE
from tests.cli.commands import Done, run

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

SPACE = feta.FeatureSpace(
    (
        feta.Integer("age", 18, 40, sensitive=True),
        feta.Categorical("sex", ("female", "male"), sensitive=True),
        feta.Categorical("town", ("Ulm", "Bonn")),
        feta.Real("income", 0.0, 10.0),
    )
)
FIRST = [[0.25, 1.0, 0.0, 0.5, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0, 0.5, -1.0]]
LAYERS: list[Any] = [(FIRST, [-8.0, 1.0]), ([[1.0, -1.0]], [-4.0])]
MODEL = Model(SPACE, Network.from_layers(LAYERS))
OTHER = Model(SPACE, Network.from_layers([LAYERS[0], ([[1.0, -1.0]], [-3.0])]))
PARTS = ("a/one.parquet", "a/two.parquet", "b.parquet")


class Here:
    """A cluster that is this process."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.died: set[str] = set()

    def __enter__(self) -> "Here":
        return self

    def __exit__(self, *_: object) -> None:
        return

    def share(self, value: object) -> object:
        return value

    def each(
        self, work: Callable[[Any, Any], object], shared: object, items: Sequence[Any]
    ) -> Iterator[tuple[int, object]]:
        for index in reversed(range(len(items))):  # in any order
            died = getattr(items[index], "part", items[index]).name in self.died
            yield index, WorkersDied("they died") if died else work(shared, items[index])


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> Here:
    cluster = Here("here")
    monkeypatch.setattr(on_cluster, "Cluster", lambda _address: cluster)
    return cluster


def table(n_people: int, seed: int) -> Any:  # noqa: ANN401 - pyarrow ships no types
    random = np.random.default_rng(seed)
    columns = {
        "id": [f"{seed}-{row}" for row in range(n_people)],
        "age": random.integers(18, 41, n_people),
        "sex": pa.array(random.choice(["female", "male"], n_people)).dictionary_encode(),
        "town": random.choice(["Ulm", "Bonn"], n_people),
        "income": random.uniform(0, 12, n_people),  # some people are outside the limits
        "label": random.choice(["favorable", "unfavorable"], n_people),
    }
    return pa.table(columns)


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """Return a folder with a model, a dataset of three parts, and the same rows in one file."""
    feta.save_model(MODEL, tmp_path / "m.feta")
    tables = [table(40 + 10 * number, number) for number in range(3)]
    for name, part in zip(PARTS, tables, strict=True):
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(part, tmp_path / "data" / name)
    whole = pa.concat_tables(tables).unify_dictionaries()
    pq.write_table(whole, tmp_path / "all.parquet", row_group_size=25)
    (tmp_path / "data" / "_SUCCESS.csv").write_text("of an engine")
    return tmp_path


OPTIONS = ("--id", "id", "--label", "label")


def audit(people: Path, *more: str, data: str = "data", out: str = "out") -> Done:
    options = ["--data", data, "--out", out, *OPTIONS, "--on", "here"]
    return run("audit", "m.feta", *options, *more, cwd=people)


def predict(people: Path, *more: str, data: str = "data", out: str = "decided") -> Done:
    return run(
        "predict", "m.feta", "--data", data, "--out", out, "--id", "id", "--on", "here", *more,
        cwd=people,
    )  # fmt: skip


def shown(folder: Path) -> dict[str, Any]:
    """Return what an audit found, without names, digests of inputs, and times."""
    content: dict[str, Any] = json.loads((folder / "audit.json").read_text())
    for name in ("data", "data_sha256", "seconds", "latency"):
        content.pop(name)
    return content


def files_of(folder: Path) -> dict[str, bytes]:
    """Return the content of all files in a folder and its folders."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.mark.parametrize("data", ["data", "data/**/*.parquet", "all.parquet"])
def test_an_audit_of_parts_is_the_audit_of_the_table(
    people: Path, data: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset, "ROWS_PER_PART", 50)
    whole = run("audit", "m.feta", "--data", "all.parquet", "--out", "whole", *OPTIONS, cwd=people)
    done = audit(people, data=data)
    assert (done.returncode, whole.returncode) == (1, 1)
    assert done.stdout.replace("out:", "whole:") == whole.stdout
    for name in ("verdicts.csv", "pairs.csv"):
        assert (people / "out" / name).read_bytes() == (people / "whole" / name).read_bytes()
    assert shown(people / "out") == shown(people / "whole")
    commit = json.loads((people / "out" / "commit.json").read_text())
    expected = [50, 50, 50] if data == "all.parquet" else [40, 50, 60]
    assert [part["rows"] for part in commit["parts"]] == expected
    assert commit["tables"] == shown(people / "out")["files"]


def test_decisions_about_parts_are_those_about_the_table(people: Path) -> None:
    run("predict", "m.feta", "--data", "all.parquet", "--out", "d.csv", "--id", "id", cwd=people)
    done = predict(people)
    assert done.returncode == 0
    header, *rows = (people / "d.csv").read_text().splitlines()
    found = []
    for name in PARTS:
        path = people / "decided" / "parts" / f"{name.replace('/', '%2F')}.csv"
        first, *lines = path.read_text().splitlines()
        assert first == header
        found += lines
    assert found == rows
    assert "Wrote decided" in done.stderr


def test_csv_files_and_bad_rows(people: Path) -> None:
    lines = ["id,age,sex,town,income", "1,20,female,Ulm,3", "2,99,male,Bonn,4", "3,30,male,Ulm,5"]
    (people / "csv").mkdir()
    (people / "csv" / "a.csv").write_text("\n".join(lines[:3]) + "\n")
    (people / "csv" / "b.csv").write_text("\n".join([lines[0], lines[3], "4,x,male,Ulm,5"]))
    options = ["--data", "csv", "--out", "out", "--id", "id", "--on", "here"]
    done = run("audit", "m.feta", *options, cwd=people)
    assert done.returncode == 2
    assert "a.csv, row 2 (id '2'): 'age' is invalid: got '99'" in done.stderr
    assert "0 of 2 parts are finished and kept in out" in done.stderr
    run("audit", "m.feta", *options, "--skip-bad-rows", cwd=people)  # nothing was finished
    done = run("audit", "m.feta", *options, cwd=people)
    assert done.returncode == 2
    assert "got another treatment of bad rows; expected the same; name another" in done.stderr
    kinds = shown(people / "out")["bad_rows"]
    assert [(kind["reason"], kind["first_row"]) for kind in kinds] == [
        ("above the maximum 40", 2),
        ("not a number: 'x'", 4),
    ]
    assert [row["row"] for row in shown(people / "out")["unanswered"]] == [2, 4]


def test_a_second_run_keeps_parts_and_recomputes_changed_and_damaged_ones(people: Path) -> None:
    audit(people)
    parts = people / "out" / "parts"
    before = files_of(parts)
    inodes = {path.name: path.stat().st_ino for path in parts.iterdir()}
    expected = shown(people / "out")
    done = audit(people)
    assert "3 of 3 parts were finished before" in done.stderr
    assert {path.name: path.stat().st_ino for path in parts.iterdir()} == inodes
    (parts / "b.parquet.verdicts.csv").write_text("damaged")
    (parts / "a%2Ftwo.parquet.receipt.json").write_text('{"stamp": 1}')
    (parts / ".b.parquet.pairs.csv.1-ab.part").write_text("of a killed worker")
    done = audit(people)
    assert "1 of 3 parts were finished before" in done.stderr
    assert files_of(parts) == before
    assert shown(people / "out") == expected
    pq.write_table(table(60, 9), people / "data" / "b.parquet")  # as many rows, others
    done = audit(people)
    assert "2 of 3 parts were finished before" in done.stderr
    assert shown(people / "out")["groups"] != expected["groups"]


def test_a_folder_with_results_of_another_model_is_refused_and_kept(people: Path) -> None:
    audit(people)
    kept = files_of(people / "out")
    feta.save_model(OTHER, people / "m.feta")
    done = audit(people)
    assert done.returncode == 2
    assert "out: the folder has results of another run: got another model; expected" in done.stderr
    people_file = people / "votes.csv"
    people_file.write_text("age,sex\n20,male\n")
    feta.save_model(MODEL, people / "m.feta")
    done = audit(people, "--vote-weights", "votes.csv")
    assert "got another votes; expected the same; name another --out" in done.stderr
    done = predict(people, out="out")
    assert " and work; expected the same" in done.stderr
    assert files_of(people / "out") == kept


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4:600] = bytes(596)
    path.write_bytes(bytes(content))


def test_a_corrupt_part_is_named(people: Path) -> None:
    damage(people / "data" / "b.parquet")
    done = audit(people)
    assert done.returncode == 2
    assert "b.parquet: the file is not a complete Parquet file: got " in done.stderr
    (people / "data" / "b.parquet").write_bytes(b"PAR1")
    assert "b.parquet: the file is not a complete Parquet file" in audit(people).stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop_columns(["town"]), "b.parquet: the table must have the column 'town'"),
        (
            lambda t: t.set_column(4, "income", pa.array(["low"] * len(t))),
            "b.parquet: another schema: the column 'income' has texts; expected numbers, as in a/",
        ),
    ],
)
def test_a_part_with_another_schema_is_named(
    people: Path, change: Callable[[Any], Any], message: str
) -> None:
    path = people / "data" / "b.parquet"
    pq.write_table(change(pq.read_table(path)), path)
    done = audit(people)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (people / "out").exists()


def test_a_part_with_another_column_is_audited_with_a_note(people: Path) -> None:
    path = people / "data" / "b.parquet"
    content = pq.read_table(path)
    pq.write_table(content.append_column("zip", pa.array([1] * len(content))), path)
    done = audit(people)
    assert "b.parquet has the column 'zip', unlike a/one.parquet; it is not read" in done.stderr
    assert done.returncode == 1


@contextmanager
def file_size(limit: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_takes_no_more_keeps_finished_parts(people: Path) -> None:
    expected = audit(people, out="expected")
    done = audit(people)
    for path in (people / "out").glob("*.*"):
        path.unlink()
    for path in (people / "out" / "parts").glob("a%2Fone*"):
        path.unlink()
    with file_size(1000):
        done = audit(people)
    assert done.returncode == 2
    assert "parts are finished and kept" in done.stderr or "free some space" in done.stderr
    assert not list((people / "out" / "parts").glob(".*"))
    done = audit(people)
    assert "2 of 3 parts were finished before" in done.stderr
    assert (done.returncode, shown(people / "out")) == (
        expected.returncode,
        shown(people / "expected") | {"files": shown(people / "out")["files"]},
    )


def test_a_part_on_which_all_workers_die_does_not_stop_the_others(people: Path, here: Here) -> None:
    run_first = audit(people, out="expected")
    assert run_first.returncode == 1

    class DiesAtWork(set[str]):
        """The name of a part whose workers survive the survey only."""

        asked = 0

        def __contains__(self, name: object) -> bool:
            self.asked += name == "b.parquet"
            return name == "b.parquet" and self.asked > 1

    here.died = DiesAtWork()
    done = audit(people)
    assert done.returncode == 2
    assert "b.parquet: they died, or write smaller parts" in done.stderr
    assert "2 of 3 parts are finished and kept in out" in done.stderr
    here.died = set()
    assert "2 of 3 parts were finished before" in audit(people).stderr
    assert shown(people / "out") == shown(people / "expected")


def test_options_that_contradict_each_other_are_refused(people: Path) -> None:
    assert (
        "--on needs a folder: got no --out"
        in run("audit", "m.feta", "--data", "data", "--on", "here", cwd=people).stderr
    )
    assert (
        "got --jobs with --on; expected one of them; write --on local:3"
        in audit(people, "--jobs", "3").stderr
    )
    assert "got --max-rows with --on" in audit(people, "--max-rows", "3").stderr
    assert (
        "nothing: no tables: got no such file; expected a .parquet or .csv file"
        in audit(people, data="nothing").stderr
    )
    (people / "data" / "c.csv").write_text("age\n1\n")
    assert "tables of two formats: got Parquet and CSV files" in audit(people).stderr


def test_parts_are_named_by_their_files(tmp_path: Path) -> None:
    for name in ("a/b.csv", "a%2Fb.csv", ".hidden.csv", "_temporary/c.csv", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n1\n")
    parts = parts_of(tmp_path)
    assert [part.name for part in parts] == ["a%2Fb.csv", "a/b.csv"]
    assert [result_name(part) for part in parts] == ["a%252Fb.csv", "a%2Fb.csv"]
    assert [part.name for part in parts_of(tmp_path / "a")] == ["b.csv"]
    assert all(os.path.isabs(part.path) for part in parts)  # noqa: PTH117 - of any kind


def test_results_among_the_data_are_refused(people: Path) -> None:
    for data, out in (("data", "data/out"), ("data", "data"), ("data/**/*.parquet", ".")):
        done = audit(people, data=data, out=out)
        assert done.returncode == 2
        assert f"{out}: results among the data: got a folder that shares files" in done.stderr
    assert not (people / "data" / "out").exists()


def test_parts_without_rows_are_left_out(people: Path) -> None:
    audit(people, out="expected")
    empty = pq.read_table(people / "data" / "b.parquet").slice(0, 0)
    pq.write_table(empty, people / "data" / "a" / "empty.parquet")
    done = audit(people)
    assert "1 of 4 parts have no rows" in done.stderr
    assert shown(people / "out") == shown(people / "expected")
    commit = json.loads((people / "out" / "commit.json").read_text())
    assert [part["part"] for part in commit["parts"]] == list(PARTS)
    for name in PARTS:
        pq.write_table(empty, people / "data" / name)
    assert "no rows: got none in any part; expected some" in audit(people, out="none").stderr


def test_results_that_change_before_they_are_merged_are_not_used(
    people: Path, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(
        work: Callable[[object, object], object], shared: object, items: Sequence[object]
    ) -> Iterator[tuple[int, object]]:
        yield from Here.each(here, work, shared, items)
        path = people / "out" / "parts" / "b.parquet.verdicts.csv"
        if path.exists():  # a worker that was presumed dead writes the results of another run
            path.write_text(path.read_text().replace("unfair", "fair"))

    monkeypatch.setattr(here, "each", late)
    done = audit(people)
    assert done.returncode == 2
    assert "the results of b.parquet are gone or changed: got no receipt with" in done.stderr
    assert not (people / "out" / "commit.json").exists()
    assert not (people / "out" / "verdicts.csv").exists()


def test_an_older_certificate_and_audit_are_replaced(people: Path) -> None:
    audit(people)
    (people / "out" / CERTIFICATE).write_text("of an older audit")
    pq.write_table(table(60, 9), people / "data" / "b.parquet")
    done = audit(people)
    assert "replaced an audit of m.feta on data, which was in out" in done.stderr
    assert not (people / "out" / CERTIFICATE).exists()


def test_long_names_of_parts_are_shortened(tmp_path: Path) -> None:
    parts = [Part(tmp_path, "year=2020/" + "x" * 240 + end) for end in ("a", "b")]
    first, second = map(result_name, parts)
    assert first != second
    assert max(len(first), len(second)) < 200
