"""Cost of certificates: to write one, and to re-prove it with `feta_check`.

    python -m benchmarks.certificates [--adult 300] [--cases german xgboost adult]

German credit with the network of `feta demo` and with XGBoost, 1,000 people each; UCI Adult
(`FETA_DATA_DIR`, 212,380 counterparts) with a trained network, a third or more of the people fair,
as many as an audit of the held-out people finds. All times are processor time of one thread.
"""

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from feta import datasets
from feta.arrays import Matrix
from feta.auditing.auditor import Auditor
from feta.auditing.block import blocks_in_memory
from feta.auditing.certify import Certification, CertifiedFacts
from feta.cli.demo import train_model
from feta.model import Model
from feta_check.certificate import Certificate
from feta_check.claims import check_claim
from feta_check.model import Model as StoredModel
from feta_check.model_file import ModelFile
from feta_check.reading import Refuted, Unchecked

# Limit of the check per claim, in seconds of processor time.
SECONDS = 10.0


@dataclass(frozen=True, eq=False)
class Case:
    """A model, and people whose audit is certified."""

    title: str
    model: Model
    people: Matrix


def german(n_people: int) -> Case:
    """Return German credit with the network of the demo."""
    del n_people
    dataset = datasets.load("german")
    people = dataset.space.encode(dataset.frame)
    model = train_model(dataset, people, np.arange(len(people)) % 5 != 0, seed=0)
    return Case("German, network", model, people)


def xgboost(n_people: int) -> Case:
    """Return German credit with 100 trees of depth 4."""
    del n_people
    import xgboost as library  # noqa: PLC0415 - only for this case

    from feta.readers.xgboost.read import read_xgboost  # noqa: PLC0415

    dataset = datasets.load("german")
    people = dataset.space.encode(dataset.frame)
    frame = dataset.frame.copy()
    for name in frame.select_dtypes(exclude="number").columns:
        frame[name] = frame[name].astype("category")
    estimator = library.XGBClassifier(n_estimators=100, max_depth=4, enable_categorical=True)
    estimator.fit(frame, dataset.labels)
    model = Model(dataset.space, read_xgboost(estimator, dataset.space), threshold=0.0)
    return Case("German, XGBoost", model, people)


def adult(n_people: int) -> Case:
    """Return UCI Adult with fair people and people with a counterexample."""
    from benchmarks.networks import train  # noqa: PLC0415 - it needs torch

    trained = train("adult")
    auditor = Auditor(trained.model)
    fair: list[int] = []
    unfair: list[int] = []
    for start in range(0, len(trained.people), 50):
        for finding in auditor.audit(trained.people[start : start + 50]):
            (fair if finding.status == "fair" else unfair).append(start + finding.row)
        if len(fair) >= n_people // 2 and len(unfair) >= n_people // 2:
            break
    chosen = fair[: max(n_people // 3, n_people - len(unfair))]
    rows = sorted(chosen + unfair[: n_people - len(chosen)])
    return Case("UCI Adult, network", trained.model, trained.people[rows])


CASES: dict[str, Callable[[int], Case]] = {"german": german, "xgboost": xgboost, "adult": adult}


def measure(case: Case, folder: Path) -> None:
    """Print what a certificate costs."""
    auditor = Auditor(case.model)
    findings = auditor.audit(case.people)
    started = time.process_time()
    with Certification(folder, auditor, CertifiedFacts()) as certification:
        for block in blocks_in_memory(case.people, 256):
            rows = slice(block.start, block.start + len(block))
            certification.write(block.audited(findings[rows]))
        certification.finish(complete=True)
    writing = time.process_time() - started
    size = (folder / "certificate.jsonl").stat().st_size
    count = len(case.people)
    print(f"{case.title}: {count} people, {case.model.relation.size:,} counterparts each")
    print(f"  writing {writing / count * 1e6:.0f} µs, {size / count:.0f} bytes per person")
    print(f"  {check(folder)}")


def check(folder: Path) -> str:
    """Re-prove a certificate; describe results and times."""
    started = time.process_time()
    certificate = Certificate(folder / "certificate.jsonl")
    model = StoredModel(ModelFile(folder / "model.feta"))
    counts, pairs, seconds = Counter[str](), Counter[str](), dict[str, list[float]]()
    for claim in certificate.claims():
        before = time.process_time()
        result = _result(model, claim)
        spent = time.process_time() - before
        counts[result] += 1
        if claim["verdict"] == "unfair":  # without the majority of all counterparts
            pairs[_result(model, claim | {"fair_decision": None})] += 1
        seconds.setdefault(result, []).append(spent)
    times = ", ".join(
        f"{counts[result]} {result} in {np.median(part):.3g} s (median), at most {max(part):.3g} s"
        for result, part in sorted(seconds.items())
    )
    return f"check: {time.process_time() - started:.1f} s; {times}; pairs alone: {dict(pairs)}"


def _result(model: StoredModel, claim: dict[str, Any]) -> str:
    try:
        return f"{check_claim(model, claim, SECONDS)} re-proved"
    except Unchecked as error:
        return f"{claim['verdict']} not checked ({error})"
    except Refuted as error:
        return f"{claim['verdict']} FALSE ({error})"


def main() -> None:
    """Measure the cases."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--adult", type=int, default=300)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    options = parser.parse_args()
    for name in options.cases:
        with tempfile.TemporaryDirectory() as folder:
            measure(CASES[name](options.adult), Path(folder))


if __name__ == "__main__":
    main()
