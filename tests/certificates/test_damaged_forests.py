"""Trees that do not end, or whose indices are outside their lists, are unreadable."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save

from feta_check.reading import Refuted, places, scaled
from tests import forest_cases
from tests.certificates.certify import certify, check, claims_of, seal
from tests.certificates.test_files import digest

Arrays = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a certificate of a forest with cuts and sets."""
    for seed in range(100):
        case = forest_cases.random_case(np.random.default_rng(seed), "free")
        certify(tmp_path, case.model, case.people)
        if {0, 1, 2} <= set(load((tmp_path / "model.feta").read_bytes())["kind"].tolist()):
            break
    assert check(tmp_path) == 0
    return tmp_path


def rewrite(folder: Path, change: Callable[[Arrays, dict[str, Any]], object]) -> int:
    """Change arrays and facts of the forest; return the exit code."""
    path = folder / "model.feta"
    content = path.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    description = json.loads(header["__metadata__"]["feta-model"])
    arrays = {name: np.array(array) for name, array in load(content).items()}
    change(arrays, description["forest"])
    path.write_bytes(save(arrays, {"feta-model": json.dumps(description)}))
    seal(folder, claims_of(folder), model_sha256=digest(path))
    return check(folder)


def node(kind: int, name: str, value: float) -> Callable[[Arrays, Any], None]:
    """Set a number of the first node of a kind."""

    def change(arrays: Arrays, _: Any) -> None:  # noqa: ANN401 - not used
        arrays[name][np.flatnonzero(arrays["kind"] == kind)[0]] = value

    return change


def array(name: str, value: float) -> Callable[[Arrays, Any], None]:
    """Set the first number of an array."""

    def change(arrays: Arrays, _: Any) -> None:  # noqa: ANN401 - not used
        arrays[name].flat[0] = value

    return change


DAMAGE: dict[str, Callable[[Arrays, dict[str, Any]], object]] = {
    "a denominator of 0": lambda _, facts: facts.update(denominator=0),
    "a denominator of 1.5": lambda _, facts: facts.update(denominator=1.5),
    "no trees": lambda arrays, _: arrays.update(roots=arrays["roots"][:0]),
    "a root that is not a node": array("roots", 10**6),
    "a root before the first node": array("roots", -1),
    "another kind of node": node(1, "kind", 3),
    "a node that is its own child": node(1, "left", 0),
    "a node without a right child": node(1, "right", 10**6),
    "a child that is before all nodes": node(1, "left", -1),
    "a cut in no column": node(1, "source", 10**6),
    "a cut in a column before the first": node(1, "source", -1),
    "a flag in no column": node(1, "flag", 10**6),
    "a flag before the first column": node(1, "flag", -2),
    "a cut at NaN": node(1, "cut", float("nan")),
    "a set in no domain": node(2, "source", 10**6),
    "a set before the first domain": node(2, "source", -1),
    "a set after its members": node(2, "start", 10**9),
    "a set before its members": node(2, "start", -1),
    "a leaf with NaN": array("values", float("nan")),
    "a fraction of a direction": array("directions", 0.5),
    "fewer values than nodes": lambda arrays, _: arrays.update(values=arrays["values"][1:]),
    "another number of directions": lambda arrays, _: arrays.update(
        directions=np.hstack([arrays["directions"]] * 2)
    ),
    "nodes that are no integers": lambda arrays, _: arrays.update(
        left=arrays["left"].astype(np.float64)
    ),
    "a domain after the last column": lambda _, facts: facts["domains"][0].update(
        dict.fromkeys(facts["domains"][0].keys() & {"first", "column"}, 10**6)
    ),
    "a domain before the first column": lambda _, facts: facts["domains"][0].update(
        dict.fromkeys(facts["domains"][0].keys() & {"first", "column"}, -1)
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_trees_are_unreadable(name: str, folder: Path) -> None:
    assert rewrite(folder, lambda *_: None) == 0
    assert rewrite(folder, DAMAGE[name]) == 2


def test_a_set_without_the_member_for_missing_numbers_is_unreadable(tmp_path: Path) -> None:
    case = forest_cases.random_case(np.random.default_rng(8), "free")
    certify(tmp_path, case.model, case.people)

    def shorten(arrays: Arrays, facts: dict[str, Any]) -> None:
        (last,) = np.flatnonzero((arrays["kind"] == 2) & (arrays["start"] == starts.max()))[:1]
        domain = int(arrays["source"][last])
        assert facts["domains"][domain]["flag"] > 0
        length = len(arrays[f"domain{domain}.numbers"]) + 1  # the last member: a missing number
        assert arrays["start"][last] + length == len(arrays["members"])
        arrays["members"] = arrays["members"][:-1]

    arrays = load((tmp_path / "model.feta").read_bytes())
    starts = arrays["start"][arrays["kind"] == 2]
    assert rewrite(tmp_path, lambda *_: None) == 0
    assert rewrite(tmp_path, shorten) == 2


def test_numbers_are_scaled_without_rounding() -> None:
    assert places([3, 0.5, 0.375]) == 3
    assert places([]) == 0
    assert scaled([3, -0.5, 0.375], 3) == [24, -4, 3]
    assert scaled([0.375], 5) == [12]
    with pytest.raises(Refuted, match="more binary places"):
        scaled([0.375], 2)
