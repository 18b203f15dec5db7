"""Everything that a run measured, one figure per fold: the content of `results.json`."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from feta.errors import SchemaError
from feta.io.regular_file import atomic_write

FORMAT, VERSION = "feta-reproduction", 1


@dataclass(frozen=True)
class Measurements:
    """The figures of one run of the protocol; rates are in percent, one figure per fold."""

    dataset: str  # "german", "adult", "ipums", "law"
    title: str  # as printed over figures: "UCI Adult", never the name of another data set
    folds: int
    quick: bool
    seed: int
    rows: int
    counterparts: int
    figures: dict[str, list[float]]  # "nn_b.accuracy" -> one figure per fold
    # "trained.ce_rate" -> one list per fold, with one figure per epoch
    curves: dict[str, list[list[float]]] = field(default_factory=dict)
    # Like figures, in seconds; not compared between runs.
    times: dict[str, list[float]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)  # key or arm -> why it was not measured
    notes: list[str] = field(default_factory=list)  # sentences that the page prints
    # The protocol as it was run: rho, epochs, the grid's choice by fold and so on.
    settings: dict[str, str] = field(default_factory=dict)
    # Versions of feta, python, numpy, torch, solvers; data checksum, model hashes.
    versions: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "Measurements":
        """Read the file of a run."""
        content = json.loads(path.read_text(encoding="utf-8"))
        kind = content.pop("format", None), content.pop("version", None)
        if kind != (FORMAT, VERSION):
            raise SchemaError(
                f"{path} is not a results file: got format {kind[0]!r}, version {kind[1]!r}; "
                f"expected {FORMAT!r}, version {VERSION}; name the results.json of a run"
            )
        return cls(**content)

    def write(self, path: Path) -> None:
        """Write as JSON, atomically."""
        content = {"format": FORMAT, "version": VERSION, **asdict(self)}
        text = json.dumps(content, indent=1, sort_keys=True)
        with atomic_write(path) as part:
            part.write_text(text + "\n", encoding="utf-8")
