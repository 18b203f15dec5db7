"""Random models against the oracles, which enumerate the counterparts and share no code."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from campaigns.certificate_mutants import MUTATIONS, Sealed
from campaigns.certificates import Case, certify, check, draw_case
from feta_check import claims

SEEDS = range(60)


def sealed_case(folder: Path, seed: int) -> tuple[np.random.Generator, Case, Sealed]:
    rng = np.random.default_rng([seed, 16])
    case = draw_case(rng)
    folder.mkdir(exist_ok=True)
    certify(case, folder)
    sealed = Sealed.read(folder, case.truth)
    sealed.fix_salts(rng)
    return rng, case, sealed


@pytest.mark.parametrize("seed", SEEDS)
def test_valid_certificates_are_accepted_and_lies_are_not(seed: int, tmp_path: Path) -> None:
    rng, _, sealed = sealed_case(tmp_path, seed)
    if seed % 2:
        sealed.grow_trees(rng)
    sealed.write("valid")
    assert check(tmp_path) == dict.fromkeys(sealed.rows, "proved")
    other = tmp_path / "other"
    sealed_case(other, seed + 1000)
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    for kind, mutate in MUTATIONS.items():
        for path, content in before.items():
            path.write_bytes(content)
        lie = Sealed.read(tmp_path, sealed.truth)  # type: ignore[arg-type]  # it has a truth
        mutate(rng, lie, other)
        lie.write(kind)
        results = check(tmp_path)
        for row, result in (results or {}).items():
            assert result == "false" or (result == "proved" and lie.holds(row)), (kind, row)


def fair_claims(sealed: Sealed) -> Iterator[dict[str, Any]]:
    """Yield claims that call a person fair, also where it is a lie."""
    assert sealed.truth is not None
    for claim in sealed.claims:
        if claim["verdict"] == "unfair":
            del claim["pair"]
        if claim["verdict"] in ("fair", "unfair"):
            yield claim


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_prove_only_what_is_true(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounds decide all leaves with more than a few counterparts."""
    rng, _, sealed = sealed_case(tmp_path, seed)
    assert sealed.truth is not None
    for claim in fair_claims(sealed):
        count = int(np.prod(sealed.truth.sizes))
        claim |= {"verdict": "fair", "fair_decision": None, "proof": {"counterparts": count}}
    if seed % 2:
        sealed.grow_trees(rng)
    sealed.write("bounds")
    monkeypatch.setattr(claims, "MAX_COUNTERPARTS", int(rng.integers(0, 4)))
    for row, result in (check(tmp_path) or {}).items():
        assert result in (("proved", "unchecked") if sealed.holds(row) else ("false", "unchecked"))
