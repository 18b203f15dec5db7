"""The recipes of docs/how-to/batches.md; an engine that is not installed is skipped."""

import gc
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feta
from feta import FairBatches, FairPredictor, Model, Network

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

SPACE = feta.FeatureSpace(
    (
        feta.Integer("age", 18, 90, sensitive=True),
        feta.Categorical("town", ("Ulm", "Bonn")),
        feta.Real("income", 0.0, 10.0),
    )
)
MODEL = Model(SPACE, Network.from_layers([([[0.1, 1.0, 0.0, 1.0]], [-11.0])]), threshold=0.0)
DECIDE = FairBatches(MODEL, keep=["id"])


@pytest.fixture
def people(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    town = pa.array(random.choice(["Ulm", "Bonn"], 500)).dictionary_encode()
    columns = {"id": np.arange(500), "town": town, "income": random.uniform(0, 10, 500)}
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=100)
    return path


@pytest.fixture
def expected(people: Path) -> list[dict[str, Any]]:
    rows = SPACE.encode(pq.read_table(people), sensitive="ignore")
    answers = FairPredictor(MODEL).decide(rows).tolist()
    assert len(set(answers)) == 2
    return [
        {"id": number, "decision": MODEL.describe(answer)} for number, answer in enumerate(answers)
    ]


def test_polars(people: Path, expected: list[dict[str, Any]]) -> None:
    pl = pytest.importorskip("polars")
    lazy = pl.scan_parquet(people).map_batches(
        lambda frame: pl.from_arrow(DECIDE(frame.to_arrow())),
        schema={"id": pl.Int64, "decision": pl.String},
    )
    assert lazy.collect().to_dicts() == expected


def test_duckdb(people: Path, expected: list[dict[str, Any]]) -> None:
    duckdb = pytest.importorskip("duckdb")
    source, target = duckdb.connect(), duckdb.connect()  # one open result per connection
    batches = source.read_parquet(str(people)).to_arrow_reader(128)
    schema = pa.schema([("id", pa.int64()), ("decision", pa.string())])
    target.register("decided", pa.RecordBatchReader.from_batches(schema, map(DECIDE, batches)))
    counted = target.sql("select decision, count(*) from decided group by decision").fetchall()
    names = [row["decision"] for row in expected]
    assert dict(counted) == {name: names.count(name) for name in set(names)}


def test_dask(people: Path, expected: list[dict[str, Any]], tmp_path: Path) -> None:
    dask = pytest.importorskip("dask")

    def part(group: int, target: Path) -> Path:
        pq.write_table(DECIDE(pq.ParquetFile(people).read_row_group(group)), target)
        return target

    parts = [dask.delayed(part)(group, tmp_path / f"part{group}.parquet") for group in range(5)]
    written = dask.compute(*parts, scheduler="threads")
    assert pa.concat_tables(map(pq.read_table, written)).to_pylist() == expected


@pytest.mark.filterwarnings("ignore")  # of Ray itself
def test_ray(people: Path, expected: list[dict[str, Any]]) -> None:
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=1, include_dashboard=False)
    try:
        decided = ray.data.read_parquet(str(people)).map_batches(DECIDE, batch_format="pyarrow")
        assert sorted(decided.take_all(), key=lambda row: row["id"]) == expected
    finally:
        ray.shutdown()


@pytest.mark.filterwarnings("ignore")  # of Spark itself, about its sockets
def test_spark(people: Path, expected: list[dict[str, Any]]) -> None:
    sql = pytest.importorskip("pyspark.sql")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    builder = sql.SparkSession.builder.master("local[1]")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
    try:
        decided = spark.read.parquet(str(people)).mapInArrow(
            lambda batches: map(DECIDE, batches), "id long, decision string"
        )
        assert [row.asDict() for row in decided.orderBy("id").collect()] == expected
    finally:
        spark.stop()
        gc.collect()  # here, where warnings about Spark's sockets are ignored
