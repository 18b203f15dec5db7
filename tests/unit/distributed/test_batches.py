import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feta
from feta import Argmax, AuditBatches, FairBatches, FairPredictor, Model, Network, Tolerance
from feta.distributed import model_file
from feta.errors import DomainError, NetworkError

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.compute")

SPACE = feta.FeatureSpace(
    (
        feta.Integer("age", 18, 40, sensitive=True),
        feta.Categorical("sex", ("female", "male"), sensitive=True),
        feta.Categorical("town", ("Ulm", "Bonn")),
        feta.Real("income", 0.0, 10.0),
    )
)
FIRST = [[0.25, 1.0, 0.0, 0.5, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0, 0.5, -1.0]]
BINARY = Model(SPACE, Network.from_layers([(FIRST, [-8.0, 1.0]), ([[1.0, -1.0]], [-4.0])]))
LIMITS = Model(SPACE, Network.from_layers([([FIRST[0]], [0.0])]), Tolerance(5.0))
CLASSES = Model(
    SPACE,
    Network.from_layers([([*FIRST, [0.1] * 6], [-8.0, 1.0, 2.0])]),
    Argmax(("no", "more", "yes")),
)


def table(n_people: int = 60) -> Any:  # noqa: ANN401 - pyarrow ships no types
    random = np.random.default_rng(3)
    return pa.table(
        {
            "id": np.arange(n_people),
            "age": random.integers(18, 41, n_people),
            "sex": random.choice(["female", "male"], n_people),
            "town": random.choice(["Ulm", "Bonn"], n_people),
            "income": random.uniform(0, 12, n_people),  # some people are outside the limits
        }
    )


@pytest.mark.parametrize("model", [BINARY, LIMITS, CLASSES])
def test_decisions_are_those_of_the_predictor(model: Model) -> None:
    people = table()
    encoded = SPACE.encode(people, sensitive="ignore", limits="open")
    expected = [model.describe(answer) for answer in FairPredictor(model).decide(encoded)]
    assert len(set(expected)) > 1
    batches = FairBatches(model, keep=["id", "town"])
    for decide in (batches, pickle.loads(pickle.dumps(batches))):
        found = decide(people.drop_columns(["age", "sex"]))
        assert found.column_names == ["id", "town", "decision"]
        assert found.column("decision").to_pylist() == expected
        assert found.column("id").equals(people.column("id"))


@pytest.mark.parametrize("size", [1, 7, 60])
def test_the_split_of_the_rows_changes_nothing(size: int) -> None:
    people = table()
    for batches in (FairBatches(BINARY, keep=["id"]), AuditBatches(BINARY, keep=["id"])):
        parts = [batches(batch) for batch in people.to_batches(max_chunksize=size)]
        assert all(isinstance(part, pa.RecordBatch) for part in parts)
        assert pa.Table.from_batches(parts).equals(batches(people).combine_chunks())


@pytest.mark.parametrize("model", [BINARY, LIMITS, CLASSES])
def test_findings_are_those_of_an_audit(model: Model) -> None:
    people = table()
    audit = feta.audit(model, people)
    examine = pickle.loads(pickle.dumps(AuditBatches(model, keep=["id"])))
    rows = examine(people).to_pylist()
    # Linear scores have one span, so everybody is unfair to the regression.
    assert {row["status"] for row in rows} >= (
        {"unfair"} if model is LIMITS else {"unfair", "fair"}
    )
    for row, finding in zip(rows, audit.findings, strict=True):
        assert row["status"] == finding.status
        assert row["decision"] == model.describe(finding.decision)
        assert row["fair_decision"] == model.describe(finding.fair_decision)
        assert (row["runtime"], row["reason"]) == (finding.runtime, None)
        if finding.pair is None:
            assert row["gap"] is row["counterpart"] is row["alone"] is None
            continue
        assert row["gap"] == finding.pair.gap
        assert json.loads(row["alone"]) == list(finding.alone)
        pair = [SPACE.decode(person) for person in (finding.pair.person, finding.pair.counterpart)]
        shown = [{"age": one["age"], "sex": one["sex"]} for one in pair]
        assert json.loads(row["counterpart"]) == (shown if model is LIMITS else shown[1])


def test_a_batch_without_rows_gives_one_without_rows() -> None:
    for batches in (FairBatches(BINARY, keep=["id"]), AuditBatches(BINARY, keep=["id"])):
        empty = batches(table()[:0])
        assert empty.num_rows == 0
        assert empty.schema.equals(batches(table()).schema)


def test_an_invalid_row_is_refused_with_its_column_and_row() -> None:
    people = table(3).set_column(3, "town", pa.array(["Ulm", "Bonn", "Kiel"]))
    for batches in (FairBatches(BINARY), AuditBatches(BINARY)):
        with pytest.raises(DomainError, match=r"^'town' is invalid: got 'Kiel'.*\(row 2\)$"):
            batches(people)


def test_columns_to_keep_must_exist_and_must_not_be_added() -> None:
    with pytest.raises(DomainError, match=r"^the table must have the column 'name'; it has 'id'"):
        FairBatches(BINARY, keep=["name"])(table())
    with pytest.raises(DomainError, match=r"^invalid column to keep: got 'decision', which is"):
        FairBatches(BINARY, keep=["decision"])
    with pytest.raises(DomainError, match=r"^invalid columns to keep: got the text 'id'; expected"):
        AuditBatches(BINARY, keep="id")


def test_a_file_is_sent_by_name_and_must_not_change(tmp_path: Path) -> None:
    path, people = tmp_path / "model.feta", table()
    inside = people.filter(pa.compute.less(people.column("income"), 10))
    encoded = SPACE.encode(inside)
    predictor = FairPredictor.fitted(BINARY, encoded, vote="mean_score", least=1)
    feta.save_model(predictor, path)
    decide, examine = FairBatches(path), AuditBatches(path)
    sent = pickle.dumps((decide, examine))
    assert len(sent) < 1000
    opened = pickle.loads(sent)
    answers = predictor.decide(SPACE.encode(people, limits="open"))
    expected = [BINARY.describe(answer) for answer in answers]
    assert opened[0](people).column("decision").to_pylist() == expected
    assert opened[1](people).column("fair_decision").to_pylist() == expected
    assert FairBatches(predictor)(people).column("decision").to_pylist() == expected
    feta.save_model(CLASSES, path)
    model_file._load.cache_clear()  # as in another process
    with pytest.raises(NetworkError, match=r"the file has changed: got the SHA-256 .*; give all"):
        pickle.loads(sent)[0](people)
    (tmp_path / "damaged.feta").write_bytes(b"no model")
    with pytest.raises(NetworkError):
        FairBatches(tmp_path / "damaged.feta")
