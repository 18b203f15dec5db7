"""Networks and vote weights that do not have the form of the format are unreadable."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save

from feta import Threshold, VoteWeights
from feta.io.canonical_json import canonical, exact_json
from feta.model import Model
from feta.vote.stored_votes import StoredVotes
from tests.certificates.certify import certify, check, check_with_javascript, claims_of, seal
from tests.certificates.test_claims import PEOPLE, SPACE, hidden
from tests.certificates.test_files import digest


def sha256(value: Any) -> str:  # noqa: ANN401 - a JSON value
    return hashlib.sha256(canonical(value)).hexdigest()


Change = Callable[[dict[str, Any], dict[str, Any]], object]


def array(name: str, edit: Callable[[Any], Any]) -> Change:
    """Replace an array."""
    return lambda arrays, _: arrays.update({name: np.ascontiguousarray(edit(arrays[name]))})


def number(name: str, place: int, value: float) -> Change:
    """Replace a number of an array."""

    def edit(old: Any) -> Any:  # noqa: ANN401 - an array of any shape
        new = old.copy()
        new.flat[place] = value
        return new

    return array(name, edit)


def table(column: int, n_rows: int) -> Change:
    """Add a table of one number for a column."""

    def change(arrays: dict[str, Any], network: dict[str, Any]) -> None:
        arrays |= {"table0.numbers": np.zeros(1), "table0.rows": np.zeros((n_rows, 6))}
        network["tables"] = [column]

    return change


DAMAGE: dict[str, Change] = {
    "votes that are no integers": array("votes.votes", lambda old: old + 0.5),
    "no votes": number("votes.votes", 0, 0),
    "an assignment before the first": number("votes.assignment_ids", 0, -1),
    "an assignment after the last": number("votes.assignment_ids", 0, 120),
    "an assignment twice": number("votes.assignment_ids", 0, 7),
    "fewer votes than assignments": array("votes.votes", lambda old: old[1:]),
    "a table for no column": table(5, 1),
    "a table with more rows than numbers": table(4, 2),
    "a jump": number("layer0.intercepts", 0, 1.0),
    "a piece without its break": array("layer0.breaks", lambda old: old[:0]),
    "a break twice": array("layer0.breaks", lambda old: np.repeat(old, 2, axis=0)),
    "a column of no neuron": array("layer0.slopes", lambda old: np.repeat(old, 2, axis=1)),
    "a column too few": array("layer0.weight", lambda old: old[:, 1:]),
    "a slope too many": array("first.slopes", lambda old: np.hstack([old, old])),
    "no neurons": lambda arrays, _: arrays.update(
        {
            "first.bias": np.zeros(0),
            "first.slopes": np.zeros((0, 5)),
            "layer0.weight": np.zeros((1, 0)),
        }
    ),
    "another number of scores": lambda arrays, _: arrays.update(
        {"layer0.weight": np.ones((2, 6)), "layer0.bias": np.ones(2)}
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_networks_are_unreadable(name: str, tmp_path: Path) -> None:
    weights = VoteWeights(np.array([0, 7, 50, 119]), np.array([3, 1, 2, 2]), SPACE)
    votes = StoredVotes("majority", weights=weights)
    certify(tmp_path, Model(SPACE, hidden(), Threshold(0.0)), PEOPLE, votes=votes)
    path = tmp_path / "model.feta"
    for change, code in ((lambda *_: None, 0), (DAMAGE[name], 2)):
        content = path.read_bytes()
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        description = json.loads(header["__metadata__"]["feta-model"])
        arrays: dict[str, Any] = dict(load(content))
        change(arrays, description["network"])
        path.write_bytes(save(arrays, {"feta-model": json.dumps(description)}))
        lists = [arrays[f"votes.{name}"].tolist() for name in ("assignment_ids", "votes")]
        stored = {"ballot": None, "level": None, "vote": "majority", "weights": lists}
        digests = {"model_sha256": digest(path), "votes_sha256": sha256(exact_json(stored))}
        seal(tmp_path, claims_of(tmp_path), **digests)
        assert check(tmp_path) == code
    assert check_with_javascript(tmp_path) in (2, None)
