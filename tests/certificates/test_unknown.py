"""What the checker does not know is never proved."""

import hashlib
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from feta import Threshold
from feta.io.canonical_json import canonical, exact_json
from feta.model import Model
from feta.scorer.ensemble.curves import Pair
from feta.scorer.ensemble.ensemble import Ensemble, Member
from feta.scorer.ensemble.probability import Sigmoid
from feta.vote.stored_votes import StoredVotes
from tests import forest_cases
from tests.certificates.certify import certify, check, check_with_javascript, claims_of, seal
from tests.certificates.test_claims import PEOPLE, SPACE, hidden

NETWORK = Model(SPACE, hidden(), Threshold(0.0))


def describe(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the description of the model, and seal everything that depends on it."""
    path = folder / "model.feta"
    old = path.read_bytes()
    size = int.from_bytes(old[:8], "little")
    header = json.loads(old[8 : 8 + size])
    description = json.loads(header["__metadata__"]["feta-model"])
    change(description)
    header["__metadata__"]["feta-model"] = json.dumps(description)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + old[8 + size :])
    schema = json.loads((folder / "schema.json").read_bytes())
    schema |= {"columns": exact_json(description["space"]), "rule": exact_json(description["rule"])}
    (folder / "schema.json").write_bytes(canonical(schema))
    digests = {
        "model_sha256": _digest(path.read_bytes()),
        "schema_sha256": _digest(canonical(schema)),
        "rule_sha256": _digest(canonical(schema["rule"])),
    }
    seal(folder, claims_of(folder), **digests)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


UNKNOWN: dict[str, Callable[[dict[str, Any]], object]] = {
    "another kind of scorer": lambda facts: facts.update(oracle=facts.pop("network")),
    "two scorers": lambda facts: facts.update(forest={}),
    "a relation of its own": lambda facts: facts.update(relation={"kind": "causal"}),
    "a network with something new": lambda facts: facts["network"].update(noise=0.5),
    "votes with something new": lambda facts: facts.update(
        votes={"vote": "majority", "weighted": False, "graded": False, "level": None, "turnout": 1}
    ),
    "another kind of column": lambda facts: facts["space"][2].update(kind="text"),
    "another rule": lambda facts: facts["rule"].update(kind="Lottery"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_new_is_not_checkable(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    certify(tmp_path, NETWORK, PEOPLE)
    describe(tmp_path, lambda _: None)
    assert check(tmp_path) == 0
    describe(tmp_path, UNKNOWN[name])
    assert check(tmp_path) == 3
    assert check_with_javascript(tmp_path) in (3, None)
    out = capsys.readouterr().out
    assert out.count("not checkable by this program: ") == 3
    assert "Re-proved: 0. False: 0. Not checked: 3." in out


def test_a_forest_with_something_new_is_not_checkable(tmp_path: Path) -> None:
    case = forest_cases.random_case(np.random.default_rng(4), "free")
    certify(tmp_path, case.model, case.people)
    describe(tmp_path, lambda _: None)
    assert check(tmp_path) == 0
    describe(tmp_path, lambda facts: facts["forest"].update(dropout=0.5))
    assert check(tmp_path) == 3


@pytest.mark.parametrize("vote", ["majority", "mean_score"])
def test_an_ensemble_is_not_checkable(
    vote: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    member = Member(hidden(), (Sigmoid(-0.5, 0.25), Pair()))
    ensemble = Ensemble((member,), np.eye(2), np.zeros(2)).difference()
    votes = StoredVotes(vote)  # type: ignore[arg-type]  # a literal
    certify(tmp_path, Model(SPACE, ensemble, Threshold(0.0)), PEOPLE, votes=votes)
    assert (tmp_path / "model.feta").exists()
    assert check(tmp_path) == 3
    assert "Re-proved: 0. False: 0. Not checked: 3." in capsys.readouterr().out
    assert check_with_javascript(tmp_path) in (3, None)
    changed = [claim | {"decision": 1} for claim in claims_of(tmp_path)]
    seal(tmp_path, changed)
    assert check(tmp_path) == 3  # nothing is known about false claims either
