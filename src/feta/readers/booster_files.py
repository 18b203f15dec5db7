"""Model files of tree ensembles: which library wrote a file, and its own model if installed."""

import warnings
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from feta.errors import NetworkError
from feta.io.regular_file import read_bytes
from feta.readers.catboost.read import BINARY as CATBOOST_START
from feta.readers.catboost.read import read_catboost
from feta.readers.lightgbm.read import read_lightgbm
from feta.readers.onnx.trees import read_onnx_trees
from feta.readers.xgboost.read import RoundsWarning, file_rounds_note, read_xgboost
from feta.scorer.forest.forest import Forest
from feta.space.feature_space import FeatureSpace

Library = Literal["xgboost", "lightgbm", "catboost", "onnx"]

SUFFIXES = {".cbm", ".json", ".txt", ".ubj"}

# The beginning of a text file that LightGBM wrote, and a key of CatBoost's JSON.
LIGHTGBM_START = b"tree\n"
CATBOOST_KEY = b'"features_info"'

READERS = {
    "catboost": read_catboost,
    "lightgbm": read_lightgbm,
    "onnx": read_onnx_trees,
    "xgboost": read_xgboost,
}


@dataclass(frozen=True, slots=True)
class TreeFile:
    """A file of a tree ensemble."""

    path: Path
    library: Library

    def read(self, space: FeatureSpace) -> Forest:
        """Read the trees; the library is not needed, but for .cbm files. See also `notes`."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RoundsWarning)
            return READERS[self.library](self.path, space)

    def open(self) -> Any:  # noqa: ANN401 - a model of the library
        """Open the file with its library; None if it is not installed."""
        try:
            library = import_module(self.library)
        except ImportError:
            return None
        if self.library == "lightgbm":
            return library.Booster(model_file=str(self.path))
        if self.library == "catboost":
            kind = "cbm" if self.path.suffix.lower() == ".cbm" else "json"
            return library.CatBoost().load_model(str(self.path), format=kind)
        booster = library.Booster()
        booster.load_model(str(self.path))
        return booster

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks for the user about how the file is read."""
        note = file_rounds_note(self.path) if self.library == "xgboost" else ""
        return (f"{self.path.name}: {note}",) if note else ()


def identify_tree_file(path: Path) -> TreeFile:
    """Return which library wrote a file; raise if none of them did."""
    content = read_bytes(path)
    if path.suffix.lower() == ".txt":
        if content[: len(LIGHTGBM_START) + 1].replace(b"\r\n", b"\n")[:5] != LIGHTGBM_START:
            raise NetworkError(
                f"{path}: the text file is no model of LightGBM: got another beginning; expected "
                "a file that Booster.save_model wrote"
            )
        return TreeFile(path, "lightgbm")
    if content.startswith(CATBOOST_START) or path.suffix.lower() == ".cbm":
        return TreeFile(path, "catboost")
    if path.suffix.lower() == ".json" and CATBOOST_KEY in content:
        return TreeFile(path, "catboost")
    return TreeFile(path, "xgboost")


def missing_note(path: Path) -> str:
    """Return what a file of XGBoost does not state about missing cells; empty for other files."""
    known = path.suffix.lower() in (".json", ".ubj") and path.is_file()
    if not known or identify_tree_file(path).library != "xgboost":
        return ""
    return (
        "a file of XGBoost does not state which cells were missing in training: FETA takes only "
        "NaN as missing; if your program passes missing=…, replace these cells by NaN and train it "
        "again"
    )
