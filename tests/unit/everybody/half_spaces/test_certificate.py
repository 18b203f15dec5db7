"""Certificates about everybody, checked by the program that shares no code with the proof."""

import hashlib
import json
import lzma
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import feta
from feta.everybody.half_spaces.certificate import certificate
from feta.everybody.half_spaces.prover import HalfSpaces
from feta.everybody.half_spaces.search import ReferenceSearch
from feta.everybody.population import Independent, marginals, uniform
from feta.everybody.where import Where
from feta.io.model_file import model_bytes
from feta.scorer.network.network import Network
from feta_people_check.__main__ import main, verify
from feta_people_check.check import Check
from feta_people_check.reading import Refused, read
from tests import oracle
from tests.everybody_cases import small_case
from tests.strategies import random_network


def model_of(seed: int) -> feta.Model:
    rng = np.random.default_rng(seed)
    space = feta.FeatureSpace(
        (
            feta.Integer("age", 20, 23, sensitive=True),
            feta.Real("income", -4.0, 4.0),
            feta.Categorical("town", ("a", "b"), other=True, missing=True),
            feta.Integer("years", 0, 200),
            feta.Integer("children", 0, 6, missing=True),
            feta.Levels("rate", (0.5, 1.25, 7.0)),
        )
    )
    return feta.Model(space, random_network(rng, space), threshold=0.0)


def shifted(model: feta.Model) -> feta.Model:
    """Return the model with the median score as its threshold: then somebody is unfair."""
    people = uniform(model.space, Where()).draw(np.random.default_rng(0), 999)
    return feta.Model(model.space, model.scorer, threshold=float(np.median(model.scorer(people))))


def written(
    tmp_path: Path, model: feta.Model, people: Independent
) -> tuple[Path, Path, HalfSpaces]:
    proof = HalfSpaces.of(model, people)
    assert isinstance(proof, HalfSpaces)
    for _ in range(30):
        proof.step(0.0)
    stored, path = tmp_path / "model.feta", tmp_path / "people.cert"
    stored.write_bytes(model_bytes(model))
    path.write_bytes(certificate(proof, people))
    return stored, path, proof


def changed(path: Path, **claims: str) -> None:
    """Replace claims of a certificate."""
    line, _, tree = lzma.decompress(path.read_bytes()).partition(b"\n")
    header = json.loads(line)
    header["claims"].update(claims)
    path.write_bytes(lzma.compress(json.dumps(header).encode() + b"\n" + tree))


@pytest.mark.parametrize("seed", range(8))
def test_certificates_are_accepted(tmp_path: Path, seed: int) -> None:
    model = model_of(seed)
    people = uniform(model.space, Where.of("years < 100" if seed % 3 == 1 else None, model.space))
    if seed % 3 == 2:
        drawn = people.draw(np.random.default_rng(seed), 50)
        people = marginals(model.space, drawn, Where())
    stored, path, _ = written(tmp_path, model, people)
    assert main([str(stored), str(path)]) == 0
    assert main([str(stored), str(path), "--sample", "5"]) == 3


@pytest.mark.parametrize("seed", range(60))
def test_the_checker_never_proves_more_than_the_truth(tmp_path: Path, seed: int) -> None:
    case = small_case(seed)
    proof = HalfSpaces.of(case.model, case.population, few=1 + 7 * (seed % 2))
    if isinstance(proof, str):
        pytest.skip(proof)
    proof.step()
    for _ in range(seed % 4):
        proof.step(0.0)
    try:
        content = certificate(proof, case.population)
    except ValueError as error:
        pytest.skip(str(error))
    stored, path = tmp_path / "model.feta", tmp_path / "people.cert"
    stored.write_bytes(model_bytes(case.model))
    path.write_bytes(content)
    check = Check(read(stored, path))
    check.run()
    assert check.fair <= case.fair
    assert check.unfair <= case.unfair
    assert main([str(stored), str(path)]) == 0


@pytest.mark.parametrize("name", ["fair", "unfair"])
def test_larger_claims_are_refused(tmp_path: Path, name: str) -> None:
    model = shifted(model_of(0))
    stored, path, proof = written(tmp_path, model, uniform(model.space, Where()))
    share = proof.fair if name == "fair" else proof.unfair
    assert share < 1
    other = {"unfair": "0"} if name == "fair" else {"fair": "0"}
    changed(path, **{name: str((1 + share) / 2), **other})
    with pytest.raises(Refused, match="the leaves prove"):
        verify(stored, path)


def test_another_model_is_refused(tmp_path: Path) -> None:
    model = model_of(4)
    stored, path, _ = written(tmp_path, model, uniform(model.space, Where()))
    stored.write_bytes(model_bytes(model_of(5)))
    with pytest.raises(Refused, match="another model"):
        verify(stored, path)


def test_nobody_is_a_certificate_of_one_leaf(tmp_path: Path) -> None:
    space = feta.FeatureSpace(
        (feta.Integer("age", 0, 1, sensitive=True), feta.Integer("x", 0, 10**6))
    )
    layers = [([[1.0, -1.0], [0.0, 1.0]], [-2.0, -7.0]), ([[5.0, 1.0]], [-500.0])]
    model = feta.Model(space, Network.from_layers(layers), threshold=0.0)
    stored, path, proof = written(tmp_path, model, uniform(space, Where()))
    assert proof.fair == 1
    assert len(path.read_bytes()) < 1000
    assert "100.0000000000%" in verify(stored, path)
    changed(path, unfair=str(Fraction(1, 10**9)))
    assert main([str(stored), str(path)]) == 1


def rounded_away(race: float, sex: list[float], area: float) -> feta.Model:
    """Return a model whose score is the term of sex, which float64 sums lose; all are unfair."""
    space = feta.FeatureSpace(
        (
            feta.Categorical("race", ("a", "b"), sensitive=True),
            feta.Categorical("sex", ("f", "m"), sensitive=True),
            feta.Categorical("area", ("c", "d"), sensitive=True),
            feta.Real("income", 0.0, 1.0),
            feta.Integer("x", 0, 10**6),
        )
    )
    slopes = [[race, race, *sex, area, area, 0.0, 0.0]]
    network = Network.from_layers([(slopes, [0.0]), ([[1.0]], [0.0])])
    return feta.Model(space, network, threshold=sum(sex) / 2)


@pytest.mark.parametrize(
    "model",
    [
        rounded_away(1.0, [2.0**-60, 0.0], -1.0),
        rounded_away(2.0**53, [1.0, 0.375], -(2.0**53)),
    ],
)
def test_sensitive_terms_that_are_rounded_to_equal_sums_prove_nothing(
    tmp_path: Path, model: feta.Model
) -> None:
    person = model.space.encode({"race": "a", "sex": "f", "area": "c", "income": 0.5, "x": 3})[0]
    assert not oracle.is_fair(model, person)
    everybody = uniform(model.space, Where())
    stored, path, proof = written(tmp_path, model, everybody)
    assert proof.fair == 0
    assert ReferenceSearch(proof.problems[0], lambda *_: (Fraction(0), Fraction(0))).fair == 0
    assert main([str(stored), str(path)]) == 0
    header = json.loads(lzma.decompress(path.read_bytes()).partition(b"\n")[0])
    nodes = bytes([128])  # everybody, bounded at once
    header |= {"tree": hashlib.sha256(nodes).hexdigest(), "claims": {"fair": "1", "unfair": "0"}}
    path.write_bytes(lzma.compress(json.dumps(header).encode() + b"\n" + nodes))
    with pytest.raises(Refused, match="the leaves prove"):
        verify(stored, path)
