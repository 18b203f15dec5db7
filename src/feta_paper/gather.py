"""Gather: the outcomes of all units put together, as `results.json` holds them."""

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from feta_paper.fold import people_of
from feta_paper.journal import RunJournal
from feta_paper.measurements import Measurements
from feta_paper.run import Run
from feta_paper.tables import step_title

PACKAGES = ("feta-fair", "numpy", "torch", "scikit-learn", "highspy", "pyscipopt", "gurobipy")

# Why a column of figures is not there.
NO_RAW = "unscaled inputs are tried on Law School alone"
NO_SAMPLE = "the paper looks at full test folds of this data set"


def gather(run: Run, journal: RunJournal) -> Measurements:
    """Put all outcomes together, in the order of the folds; every unit must be done."""
    done, people = journal.done(), people_of(run.protocol.dataset, run.protocol.rows, run.seed)
    figures: dict[str, list[float]] = {}
    curves: dict[str, list[list[float]]] = {}
    times: dict[str, list[float]] = {}
    missing: dict[str, str] = {}
    notes = [*run.protocol.notes(), *people.dataset.notes]
    remarks: dict[tuple[str, str], list[int]] = {}
    settings = run.protocol.settings()
    versions = _versions() | {"data": people.checksum, "source of the data": people.dataset.source}
    for unit in run.units:
        told, seconds = done[unit.key]
        variant, fold = unit.variant, f"fold{unit.fold}"
        for into, name in ((figures, "figures"), (times, "times")):
            for key, value in told[name].items():
                into.setdefault(variant + key, []).extend(_list(value))
        for key, curve in told["curves"].items():
            curves.setdefault(variant + key, []).append(curve)
        times.setdefault(f"arm.{unit.name}.seconds", []).append(seconds)
        missing |= {variant + key: why for key, why in told["missing"].items()}
        settings |= {f"{variant}{key}.{fold}": words for key, words in told["settings"].items()}
        for note in told["notes"]:
            remarks.setdefault((unit.name, note), []).append(unit.fold + 1)
        versions |= {f"model.{variant}{key}.{fold}": one for key, one in told["models"].items()}
    for (name, note), folds in remarks.items():
        notes.append(f"{step_title(name)}, fold {', '.join(map(str, folds))}: {note}.")
    times["total.seconds"] = [journal.seconds()]
    dataset = people.dataset
    return Measurements(
        dataset=run.protocol.dataset,
        title=dataset.title,
        folds=run.folds,
        quick=run.protocol.quick,
        seed=run.seed,
        rows=len(people.rows),
        counterparts=dataset.space.lattice.size,
        figures=figures,
        curves=curves,
        times=times,
        missing=missing | _absent(run, figures),
        notes=notes,
        settings=settings,
        versions=versions,
    )


def _absent(run: Run, figures: dict[str, list[float]]) -> dict[str, str]:
    absent = {}
    if not run.protocol.raw:
        absent["raw"] = NO_RAW
    if run.protocol.test_share >= 1:
        absent["sample"] = NO_SAMPLE
    if "nn_b.ce_rate_real" not in figures:
        why = "no sensitive attribute is a number"
        absent |= {f"{arm}.ce_rate_real": why for arm in ("nn_b", "trained")}
    return absent


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _list(value: Any) -> list[float]:  # noqa: ANN401 - out of JSON: a number or several
    return value if isinstance(value, list) else [value]
