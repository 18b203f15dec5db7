"""Measurements: everything a reproduction run measured, a figure a fold."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from feta.errors import SchemaError
from feta.io.part_file import written_whole

FORMAT, VERSION = "feta-reproduction", 1


@dataclass(frozen=True)
class Measurements:
    """What one run of the protocol came to; rates in per cent, one figure a fold."""

    dataset: str  # "german", "adult", "ipums", "law"
    title: str  # as printed over figures: "UCI Adult", never another data set's name
    folds: int
    quick: bool
    seed: int
    rows: int
    counterparts: int
    figures: dict[str, list[float]]  # "nn_b.accuracy" -> a figure a fold
    curves: dict[str, list[list[float]]] = field(
        default_factory=dict
    )  # "trained.ce_rate" -> fold -> epoch
    times: dict[str, list[float]] = field(
        default_factory=dict
    )  # the same for what the clock says; not compared between runs
    missing: dict[str, str] = field(default_factory=dict)  # key or arm -> why it was not measured
    notes: list[str] = field(default_factory=list)  # plain sentences the page prints
    settings: dict[str, str] = field(
        default_factory=dict
    )  # protocol as carried out: rho, epochs, grid's choice by fold …
    versions: dict[str, str] = field(
        default_factory=dict
    )  # feta, python, numpy, torch, solver …; data checksum, model hashes

    @classmethod
    def read(cls, path: Path) -> "Measurements":
        """Read what a run has written."""
        told = json.loads(path.read_text(encoding="utf-8"))
        if (told.pop("format", None), told.pop("version", None)) != (FORMAT, VERSION):
            raise SchemaError(f"{path} must be a {FORMAT} file of version {VERSION}")
        return cls(**told)

    def write(self, path: Path) -> None:
        """Write as JSON, at once or not at all."""
        told = {"format": FORMAT, "version": VERSION, **asdict(self)}
        text = json.dumps(told, indent=1, sort_keys=True)
        with written_whole(path) as part:
            part.write_text(text + "\n", encoding="utf-8")
