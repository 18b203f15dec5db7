"""The program gives the recorded results: exit codes, files, verdicts, pairs, scores and decisions.

Wording, times and versions are not compared; `comparison.py` lists the keys. A deliberate change is
recorded again by `python -m tests.golden.record`.
"""

import csv
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.golden.api_cases import API_CASES
from tests.golden.command_cases import MODEL_CASES, command_results
from tests.golden.comparison import differences, without_wording
from tests.golden.make_models import MODELS, networks, write_models
from tests.golden.program_cases import PROGRAM_CASES
from tests.golden.record import EXPECTED, expected

# A solver finds a real-valued counterpart, and an estimator's fit stops, within a tolerance only.
TOLERANCES = {"api_real": 1e-6, "readme_pipeline": 1e-6}


def test_models_are_reproduced_bit_for_bit(tmp_path: Path) -> None:
    write_models(tmp_path)
    written = {path.name: content(path) for path in tmp_path.iterdir()}
    stored = {path.name: content(path) for path in MODELS.iterdir()}
    assert written.keys() == stored.keys()
    assert [name for name in written if written[name] != stored[name]] == []


def content(path: Path) -> bytes | dict[str, bytes]:
    """Return the bytes of a file; of an archive, those of its members.

    Python 3.11.2 and 3.11.7 write other headers.
    """
    if path.suffix != ".npz":
        return path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_commands_give_the_recorded_results(tmp_path: Path) -> None:
    results = command_results(tmp_path)
    deviations = [
        f"{name}{difference}"
        for name, result in results.items()
        for difference in differences(result, expected(f"command_{name}"))
    ]
    assert deviations == []


@pytest.mark.parametrize("name", API_CASES)
def test_python_interface_gives_the_recorded_results(name: str) -> None:
    tolerance = TOLERANCES.get(name, 1e-9)
    assert list(differences(API_CASES[name](), expected(name), tolerance=tolerance)) == []


@pytest.mark.parametrize("name", PROGRAM_CASES)
@pytest.mark.filterwarnings("ignore")
def test_programs_give_the_recorded_results(name: str) -> None:
    tolerance = TOLERANCES.get(name, 1e-9)
    assert list(differences(PROGRAM_CASES[name](), expected(name), tolerance=tolerance)) == []


def test_every_recorded_file_belongs_to_a_case() -> None:
    commands = {f"command_{name}" for name in (*MODEL_CASES, "diff", "refused")}
    stored = {path.stem for path in EXPECTED.iterdir()}
    assert stored == commands | API_CASES.keys() | PROGRAM_CASES.keys()


def test_both_engines_record_the_same_verdicts_and_pairs() -> None:
    lattice, exhaustive = expected("command_threshold"), expected("command_exhaustive")
    for name in ("verdicts.csv", "pairs.csv"):
        assert lattice["audit"][name] == exhaustive["audit"][name]
    assert lattice["predict"]["csv"] == exhaustive["predict"]["csv"]


def scores_of_counterparts(name: str, row: dict[str, str]) -> list[float]:
    """Evaluate the network on every counterpart; this is exact by the choice of weights."""
    employed = float(row["employed"] or 0)
    shared = [
        (float(row["months"]) - 24) / 16,
        (float(row["amount"]) - 4096) / 4096,
        float(row["savings"]) / 512,
        *(float(row["housing"] == value) for value in ("own", "rent", "free")),
        (employed - 8) / 8,
        float(row["employed"] == ""),
        float(row["dependents"]),
    ]
    sexes = ((1.0, 0.0), (0.0, 1.0))
    values = np.array([[(age - 48) / 16, *sex, *shared] for age in range(18, 76) for sex in sexes])
    *hidden, (weight, bias) = networks()[name]
    for inner, offset in hidden:
        values = np.maximum(values @ inner.T + offset, 0.0)
    scores: list[float] = (values @ weight.T + bias)[:, 0].tolist()
    return scores


@pytest.mark.parametrize("name", ["threshold", "later", "below", "limit"])
def test_every_recorded_pair_is_a_unique_choice(name: str) -> None:
    """Engines may choose either of two counterparts with equal scores, so there must be none."""
    pairs = list(csv.DictReader(expected(f"command_{name}")["audit"]["pairs.csv"]))
    columns = ("lower score", "higher score") if name == "limit" else ("counterpart score",)
    assert len(pairs) > 20
    for row in pairs:
        scores = scores_of_counterparts(name, row)
        assert [scores.count(float(row[column])) for column in columns] == [1] * len(columns)


def test_recorded_cases_cover_every_exit_code() -> None:
    codes = {expected(f"command_{name}")["audit"]["code"] for name in MODEL_CASES}
    assert codes == {0, 1, 3}
    assert set(expected("command_refused").values()) == {2}


@pytest.mark.parametrize(
    ("actual", "expected_", "same"),
    [
        (1.0, 1.0 + 1e-12, True),
        (1.0, 1.0 + 1e-6, False),
        (1, 1.0, False),
        (True, 1, False),
        ({"a": 1}, {"a": 1, "b": None}, False),
        ([1, 2], [1], False),
        (["x"], ["y"], False),
        (float(np.nan), 0.0, False),
    ],
)
def test_comparison_notices_a_difference(actual: object, expected_: object, same: bool) -> None:
    assert (list(differences(actual, expected_)) == []) is same


def test_comparison_leaves_out_wording_only() -> None:
    content = {"seconds": 1.0, "doubts": ["x", "y"], "reason": "", "rows": [{"notes": []}], "n": 3}
    assert without_wording(content) == {
        "doubts": "2 texts",
        "reason": "",
        "rows": [{"notes": "0 texts"}],
        "n": 3,
    }
