"""Campaign of engines: Ray and Spark decide a table exactly as one predictor does.

    python -m campaigns.engines [--rows 1000000] [--engines ray spark] [--seed 0]

People are drawn from the space of German credit and written to ten Parquet files. Each engine reads
them, applies `feta.FairBatches` with the path of the model, and writes Parquet files, as the
recipes of docs/how-to/batches.md do. Their rows, in the order of the ids, must have the SHA-256 of
the decisions of `feta.FairPredictor`. An engine that is not installed is counted as such.
"""

import argparse
import hashlib
import importlib.util
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import feta
from campaigns.large_tables import batches, save_german_model, write_parts
from campaigns.result import finish

MODULES = {"ray": "ray", "spark": "pyspark"}

PARTS, PROCESSES = 10, 2


def digest(table: Any) -> str:  # noqa: ANN401 - pyarrow ships no types
    """Return the SHA-256 of ids and decisions, in the order of the ids."""
    ordered = table.select(["id", "decision"]).sort_by("id")
    found = hashlib.sha256(ordered["id"].to_numpy().astype("<i8").tobytes())
    found.update("\n".join(ordered["decision"].to_pylist()).encode())
    return found.hexdigest()


def with_ray(source: Path, decide: feta.FairBatches, target: Path) -> None:
    """Decide with Ray Data."""
    import ray  # noqa: PLC0415 - an engine that may be missing

    ray.init(num_cpus=PROCESSES, include_dashboard=False)
    ds = ray.data.read_parquet(str(source))
    ds.map_batches(decide, batch_format="pyarrow").write_parquet(str(target))
    ray.shutdown()


def with_spark(source: Path, decide: feta.FairBatches, target: Path) -> None:
    """Decide with Spark."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - may be missing

    builder = SparkSession.builder.master(f"local[{PROCESSES}]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1")
    spark = builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
    df = spark.read.parquet(str(source))
    decided = df.mapInArrow(lambda parts: map(decide, parts), "id long, decision string")
    decided.write.parquet(str(target))
    spark.stop()


ENGINES = {"ray": with_ray, "spark": with_spark}


def main() -> int:
    """Run from the command line; exit 1 if any engine decides differently."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--engines", nargs="+", choices=list(ENGINES), default=list(ENGINES))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started, counts = time.perf_counter(), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        space = save_german_model(folder / "model.feta")
        predictor = feta.FairPredictor(feta.load_model(folder / "model.feta"))
        answers = []
        drawn = batches(space, options.rows, options.seed, size=-(-options.rows // PARTS))
        for table in write_parts(drawn, folder / "people"):
            outcomes = predictor.decide(space.encode(table.drop_columns(["id"])))
            names = [predictor.model.describe(outcome) for outcome in outcomes.tolist()]
            answers.append(pa.table({"id": table["id"], "decision": names}))
        expected = digest(pa.concat_tables(answers))
        print(f"FairPredictor: {expected}")
        decide = feta.FairBatches(folder / "model.feta", keep=["id"])
        for engine in options.engines:
            if importlib.util.find_spec(MODULES[engine]) is None:
                counts[f"{engine} is not installed"] += 1
                continue
            before = time.perf_counter()
            ENGINES[engine](folder / "people", decide, folder / engine)
            found = digest(pq.read_table(folder / engine))
            print(f"{engine}: {found}, {time.perf_counter() - before:.0f} s")
            counts[f"rows decided by {engine}"] += options.rows
            counts[f"WRONG decisions of {engine}"] += found != expected
    return finish(+counts, started)


if __name__ == "__main__":
    sys.exit(main())
