"""Collection of the results of all units into the content of `results.json`."""

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from feta_paper.fold import load_people
from feta_paper.journal import Key, RunJournal
from feta_paper.labels import step_title
from feta_paper.measurements import Measurements
from feta_paper.run import Run

PACKAGES = ("feta-fair", "numpy", "torch", "scikit-learn", "highspy", "pyscipopt", "gurobipy")

# Why a variant has no figures.
NO_RAW = "unscaled inputs are only run on Law School"
NO_SAMPLE = "the paper uses full test folds of this data set"


def gather(run: Run, journal: RunJournal) -> Measurements:
    """Collect all results in the order of the folds; every unit must be done."""
    done, people = journal.done(), load_people(run.protocol.dataset, run.protocol.rows, run.seed)
    figures: dict[str, list[float]] = {}
    curves: dict[str, list[list[float]]] = {}
    times: dict[str, list[float]] = {}
    missing: dict[str, str] = {}
    settings = run.protocol.settings()
    versions = installed_versions() | {
        "data": people.checksum,
        "source of the data": people.dataset.source,
    }
    for unit in run.units:
        result, seconds = done[unit.key]
        variant, fold = unit.variant, f"fold{unit.fold_number}"
        for target, name in ((figures, "figures"), (times, "times")):
            for key, value in result[name].items():
                target.setdefault(variant + key, []).extend(_list(value))
        for key, curve in result["curves"].items():
            curves.setdefault(variant + key, []).append(curve)
        times.setdefault(f"arm.{unit.name}.seconds", []).append(seconds)
        missing |= {variant + key: reason for key, reason in result["missing"].items()}
        settings |= {f"{variant}{key}.{fold}": text for key, text in result["settings"].items()}
        models = result["models"].items()
        versions |= {f"model.{variant}{key}.{fold}": fingerprint for key, fingerprint in models}
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
        notes=[*run.protocol.notes(), *dataset.notes, *_step_notes(run, done)],
        settings=settings,
        versions=versions,
    )


def _step_notes(run: Run, done: dict[Key, tuple[dict[str, Any], float]]) -> list[str]:
    """Return the notes of all steps; a note of several folds is written once."""
    folds: dict[tuple[str, str], list[int]] = {}
    for unit in run.units:
        for note in done[unit.key][0]["notes"]:
            folds.setdefault((unit.name, note), []).append(unit.fold_number + 1)
    return [
        f"{step_title(name)}, fold {', '.join(map(str, numbers))}: {note}."
        for (name, note), numbers in folds.items()
    ]


def _absent(run: Run, figures: dict[str, list[float]]) -> dict[str, str]:
    reasons = {}
    if not run.protocol.raw:
        reasons["raw"] = NO_RAW
    if run.protocol.test_share >= 1:
        reasons["sample"] = NO_SAMPLE
    if "nn_b.ce_rate_real" not in figures:
        reason = "no sensitive attribute is a number"
        reasons |= {f"{arm}.ce_rate_real": reason for arm in ("nn_b", "trained")}
    return reasons


def installed_versions() -> dict[str, str]:
    """Return the versions of everything that the figures may depend on."""
    versions = {"python": platform.python_version(), "machine": platform.machine()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return versions


def _list(value: Any) -> list[float]:  # noqa: ANN401 - from JSON: one number or several
    return value if isinstance(value, list) else [value]
