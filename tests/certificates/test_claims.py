import itertools
import time
from pathlib import Path

import numpy as np
import pytest

from feta import (
    Argmax,
    Categorical,
    Derived,
    FairPredictor,
    FeatureSpace,
    Integer,
    Levels,
    Model,
    Network,
    OneVsRest,
    Real,
    Threshold,
    Tolerance,
    VoteWeights,
)
from feta.auditing.auditor import Auditor
from feta.auditing.certify import Certification, CertifiedFacts
from feta.io.canonical_json import exact_text
from feta.rule import Rule
from feta.scorer.network.activation import leaky_relu
from feta.scorer.network.builder import NetworkBuilder
from feta.scorer.network.smooth.activation import Smooth
from feta.vote.graded_ballot import GradedBallot
from feta.vote.stored_votes import StoredVotes
from feta_check import claims
from feta_check.claims import check_claim
from feta_check.model import Model as StoredModel
from feta_check.model_file import ModelFile
from feta_check.reading import Unchecked
from tests.certificates.certify import certify, check, check_with_javascript, claims_of, seal

AGE = Integer("age", 20, 59, sensitive=True)
SEX = Categorical("sex", ("f", "m"), sensitive=True, missing=True)
INCOME = Real("income", 0, 100)
SPACE = FeatureSpace((AGE, SEX, INCOME))
PEOPLE = SPACE.encode(
    [
        {"age": 20, "sex": "f", "income": 5},
        {"age": 30, "sex": None, "income": 50.3},
        {"age": 59, "sex": "m", "income": 140},  # outside the limits, which are open
    ],
    limits="open",
)


def hidden(outputs: int = 1, space: FeatureSpace = SPACE) -> Network:
    """Return a network whose score depends on age a little."""
    rng = np.random.default_rng(3)
    width = space.width
    builder = NetworkBuilder()
    builder.linear(rng.normal(size=(6, width)) / 8, rng.normal(size=6))
    builder.activate(leaky_relu(0.125), "leaky")
    builder.linear(rng.normal(size=(outputs, 6)), rng.normal(size=outputs))
    return builder.network()


RULES = [Threshold(0.0), Tolerance(0.5), Argmax(("a", "b", "c")), OneVsRest(("a", "b", "c"), "b")]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_every_rule_is_re_proved(tmp_path: Path, rule: Threshold) -> None:
    folder = certify(tmp_path, Model(SPACE, hidden(rule.outputs), rule), PEOPLE)
    assert check(folder) == 0
    assert check_with_javascript(folder) in (0, None)


def test_a_score_on_the_threshold_goes_to_its_side(tmp_path: Path) -> None:
    network = Network.from_layers([([[1.0, 0, 0, 0, 0]], [-40.0])])
    for equality, winner in (("favorable", 1), ("unfavorable", 0)):
        model = Model(SPACE, network, Threshold(0.0, equality=equality))  # type: ignore[arg-type]  # a literal
        folder = certify(tmp_path, model, SPACE.encode([{"age": 40, "sex": "f", "income": 0}]))
        (claim,) = claims_of(folder)
        assert claim["decision"] == winner
        assert check(folder) == 0
        seal(folder, [claim | {"decision": 1 - winner}])
        assert check(folder) == 1


def test_a_derived_column_and_levels_are_re_proved(tmp_path: Path) -> None:
    bands = Derived("band", "age", (("young", 20, 39), ("old", 40, 59)))
    hours = Levels("hours", (0.5, 1.0, 2.5, 4.0), sensitive=True, missing=True)
    space = FeatureSpace((bands, AGE, hours, INCOME))
    people = space.encode(
        [{"age": 20, "hours": 1.0, "income": 50.3}, {"age": 40, "hours": None, "income": 5}]
    )
    folder = certify(tmp_path, Model(space, hidden(space=space), Threshold(0.0)), people)
    assert check(folder) == 0
    assert check_with_javascript(folder) in (0, None)


@pytest.mark.parametrize("rule", RULES[:3], ids=lambda rule: type(rule).__name__)
@pytest.mark.parametrize("vote", ["majority", "mean_score"])
def test_weighted_votes_are_re_proved(tmp_path: Path, rule: Threshold, vote: str) -> None:
    weights = VoteWeights(np.array([0, 7, 50, 119]), np.array([3, 1, 2, 2]), SPACE)
    votes = StoredVotes(vote, weights=weights)  # type: ignore[arg-type]  # a literal
    folder = certify(tmp_path, Model(SPACE, hidden(rule.outputs), rule), PEOPLE, votes=votes)
    assert check(folder) == 0
    assert check_with_javascript(folder) in (0, None)
    lies = [claim | {"fair_decision": other(claim["fair_decision"])} for claim in claims_of(folder)]
    seal(folder, lies)
    assert check(folder) == 1
    assert check_with_javascript(folder) in (1, None)


def other(decision: object) -> object:
    return "3p0" if isinstance(decision, str) else 1 - int(str(decision))


@pytest.mark.parametrize("favors", ["above", "below"])
def test_a_graded_ballot_is_re_proved(tmp_path: Path, favors: str) -> None:
    network = Network.from_layers([([[0.05, 0.3, 0, 0, 0]], [-2.0])], sigmoid=True)
    model = Model(SPACE, network, Threshold(0.0, favors=favors))  # type: ignore[arg-type]  # a literal
    ballot = GradedBallot(np.array([-0.5, 0.0, 0.25]), np.array([0, 2**18, 2**19, 2**20]))
    votes = StoredVotes("mean_probability", 0.5, None, ballot)
    folder = certify(tmp_path, model, PEOPLE, votes=votes)
    assert check(folder) == 0
    assert check_with_javascript(folder) in (0, None)
    seal(
        folder,
        [claim | {"fair_decision": other(claim["fair_decision"])} for claim in claims_of(folder)],
    )
    assert check(folder) == 1


def test_a_vote_with_exponentials_is_not_checkable(tmp_path: Path) -> None:
    network = Network.from_layers([([[0.05, 0.3, 0, 0, 0]], [-2.0])], sigmoid=True)
    model = Model(SPACE, network, Threshold(0.0))
    votes = StoredVotes("mean_probability")
    assert FairPredictor.voting(model, votes).vote == "mean_probability"
    folder = certify(tmp_path, model, PEOPLE, votes=votes)
    assert check(folder) == 3
    assert check_with_javascript(folder) in (3, None)


def test_a_sensitive_column_with_real_values_is_not_checkable(tmp_path: Path) -> None:
    folder = certify(tmp_path, Model(SPACE, hidden(), Threshold(-100.0)), PEOPLE)
    claims = claims_of(folder)
    space = FeatureSpace((Real("age", 20, 60, sensitive=True), SEX, INCOME))
    model = Model(space, hidden(space=space), Threshold(-100.0))
    auditor = Auditor(model)
    with Certification(folder, auditor, CertifiedFacts()) as certification:
        certification.finish(complete=True)
    seal(folder, claims)
    assert check(folder) == 3
    assert check_with_javascript(folder) in (3, None)


MANY = FeatureSpace(
    (
        Integer("age", 0, 2**22 - 1, sensitive=True, missing=True),
        Levels("weeks", (0.0, 0.5, 2.0, 512.0), sensitive=True),
        INCOME,
    )
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_bounds_decide_large_leaves(tmp_path: Path, rule: Rule) -> None:
    """16,777,220 counterparts are too many to be listed; lines decide them."""
    weights = np.array(
        [
            [2.0**-25, 0.0, -(2.0**-14), 0.1],
            [-(2.0**-24), 0.0, 2.0**-15, 0.2],
            [0, 0.125, 2.0**-14, -0.1],
        ]
    )
    builder = NetworkBuilder()
    builder.linear(weights, np.array([1.0, 0.05, 0.5]))
    builder.activate(leaky_relu(0.125), "leaky")
    out = np.array([[1.0, 0.5, 0.25], [0.5, 0.25, 0.125], [-1.0, 0.0, 0.0]])[: rule.outputs]
    builder.linear(out, np.array([1.0, 0.0, 0.0])[: rule.outputs])
    builder.activate(leaky_relu(0.5), "leaky")
    builder.linear(np.eye(rule.outputs), np.zeros(rule.outputs))
    model = Model(MANY, builder.network(), rule)
    person = MANY.encode([{"age": 5, "weeks": 2.0, "income": 20}])
    with Certification(tmp_path, Auditor(model), CertifiedFacts()) as certification:
        certification.finish(complete=True)  # no audit: it would take long
    score = model.exact_scores(person)
    regression = rule.n_classes == 0
    decision = exact_text(score.floats()[0, 0]) if regression else int(model.decide(person)[0])
    claim = {
        "decision": decision,
        "fair_decision": None,
        "id": "",
        "person": [exact_text(5.0), exact_text(2.0), exact_text(20.0)],
        "row": 1,
        "salt": "0" * 32,
        "verdict": "fair",
    }
    seal(tmp_path, [claim | {"proof": {"counterparts": (2**22 + 1) * 4}}])
    assert check(tmp_path) == 0  # more than 2^20 counterparts are not listed: bounds decide
    center = {"center": decision} if regression else {}
    tree = {"tree": [[0, 2**21], 0, [1, 1], 0, 0], **center}
    seal(tmp_path, [claim | {"proof": tree}])
    assert check(tmp_path) == 0
    assert check_with_javascript(tmp_path) in (3, None)
    seal(tmp_path, [claim | {"fair_decision": decision, "proof": tree}])
    proved = 3 if regression else 0  # a median needs a list of all scores; a majority follows
    assert check(tmp_path) == proved
    # A center, or a decision, that the bounds do not prove, and that no counterpart refutes.
    lie = {"center": "1p9"} if regression else {}
    wrong = claim if regression else claim | {"decision": decision}
    if isinstance(rule, Threshold):
        tight = Model(MANY, model.scorer, Threshold(score.floats()[0, 0] - 2.0**-12))
        with Certification(tmp_path, Auditor(tight), CertifiedFacts()) as certification:
            certification.finish(complete=True)
    elif not regression:
        return
    seal(tmp_path, [wrong | {"proof": {"tree": [0], **lie}}])
    assert check(tmp_path) == 3


DAMAGED_PROOFS: list[object] = [
    {"counterparts": 119},
    {"counterparts": True},
    {"counterparts": 120, "tree": [0]},
    {"tree": []},
    {"tree": [[0, 5], 0]},
    {"tree": [0, 0]},
    {"tree": [[2, 0], 0, 0]},
    {"tree": [[-1, 0], 0, 0]},
    {"tree": [[0, 39], 0, 0]},
    {"tree": [[0, -1], 0, 0]},
    {"tree": [[0, "5p0"], 0, 0]},
    {"tree": [[0], 0, 0]},
    {"tree": [False]},
    {"tree": {}},
    {"center": "0", "tree": [0]},
    [],
    None,
]


@pytest.mark.parametrize("proof", DAMAGED_PROOFS, ids=str)
def test_a_proof_of_another_form_is_false(tmp_path: Path, proof: object) -> None:
    model = Model(SPACE, hidden(), Threshold(-100.0))
    folder = certify(tmp_path, model, PEOPLE[:1])
    (claim,) = claims_of(folder)
    assert claim["proof"] == {"counterparts": 120}
    seal(folder, [claim | {"proof": proof}])
    assert check(folder) == 1
    assert check_with_javascript(folder) in (1, None)


def test_a_tree_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = certify(tmp_path, Model(SPACE, hidden(), Threshold(-100.0)), PEOPLE[:1])
    (claim,) = claims_of(folder)
    for limit, code in ((4, 1), (5, 0), (6, 0)):
        monkeypatch.setattr(claims, "MAX_NODES", limit)
        seal(folder, [claim | {"proof": {"tree": [[0, 5], 0, [1, 1], 0, 0]}}])
        assert check(folder) == code


DAMAGED_CLAIMS: list[dict[str, object]] = [
    {"decision": 0},
    {"decision": True},
    {"decision": "1p0"},
    {"fair_decision": 0},
    {"salt": "00"},
    {"id": 3},
    {"more": 1},
    {"person": [0]},
    {"person": 0},
    {"person": ["5p2", 0, "1p-1075"]},
    {"person": ["5p2", 0, "20000000000001p0"]},
    {"person": ["5p2", 0, "1p1024"]},
    {"person": ["5p2", 3, "5p0"]},
    {"person": ["5p2", "0", "5p0"]},
    {"person": ["5p2", True, "5p0"]},
    {"person": ["1p0", 0, "5p0"]},  # a sensitive number outside its domain
    {"person": ["29p-1", 0, "5p0"]},
    {"person": ["5p2", 0, None]},
    {"person": ["5p2", 0, "a p0"]},
    {"person": ["5p2", 0, "4p0"]},  # an even integer
    {"person": ["5p2", 0, "5P0"]},
    {"person": ["5p2", 0, "-0"]},
    {"person": ["5p2", 0, "05p0"]},
    {"person": ["5p2", 0, "5p00"]},
    {"person": ["5p2", 0, "5p-100000"]},
    {"person": ["5p2", 0, "5" * 5000 + "p0"]},
]


@pytest.mark.parametrize("change", DAMAGED_CLAIMS, ids=lambda change: str(change)[:60])
def test_a_claim_of_another_form_is_false(tmp_path: Path, change: dict[str, object]) -> None:
    model = Model(SPACE, hidden(), Threshold(-100.0))
    folder = certify(tmp_path, model, PEOPLE[:1])
    (claim,) = claims_of(folder)
    seal(folder, [claim | change])
    assert check(folder) == 1
    assert check_with_javascript(folder) in (1, None)


def test_a_pair_must_be_one(tmp_path: Path) -> None:
    network = Network.from_layers([([[1.0, 0, 0, 0, 0]], [-40.0])])
    folder = certify(tmp_path, Model(SPACE, network, Threshold(0.0)), PEOPLE[:1])
    (claim,) = claims_of(folder)
    pair = claim["pair"]
    own, counterpart = pair["people"]
    lies: list[object] = [
        {"people": [counterpart, own], "scores": pair["scores"][::-1]},
        {"people": [own, own], "scores": [pair["scores"][0]] * 2},
        {"people": [own, counterpart], "scores": pair["scores"][::-1]},
        {"people": [own, counterpart[:1]], "scores": pair["scores"]},
        {"people": [own], "scores": pair["scores"]},
        {"people": [own, counterpart], "scores": [[], []]},
        {"people": [own, counterpart], "scores": [5, 6]},
        {"people": [own, counterpart]},
        [],
    ]
    for lie in lies:
        seal(folder, [claim | {"pair": lie}])
        assert check(folder) == 1, lie
        assert check_with_javascript(folder) in (1, None), lie


def test_a_network_with_smooth_activations_is_not_checkable(tmp_path: Path) -> None:
    layers = [([[0.05, 0.3, 0, 0, 0]] * 2, [-2.0, 1.0]), ([[1.0, -0.5]], [0.0])]
    for activation in (Smooth("tanh"), Smooth("tanh", on=np.array([1.0, 0.0]))):
        network = Network.from_layers(layers, activation=activation)
        folder = certify(tmp_path / str(activation.width), Model(SPACE, network), PEOPLE)
        assert check(folder) == 3
        assert check_with_javascript(folder) in (3, None)


def test_the_smallest_numbers_are_exact(tmp_path: Path) -> None:
    network = Network.from_layers([([[2.0**-1060, 0, 0, 0, 0]], [-40 * 2.0**-1060 + 2.0**-1074])])
    people = SPACE.encode([{"age": 40, "sex": "f", "income": 2.0**-1074}])
    folder = certify(tmp_path, Model(SPACE, network, Threshold(0.0)), people)
    (claim,) = claims_of(folder)
    assert claim["decision"] == 1
    assert check(folder) == 0
    seal(folder, [claim | {"decision": 0}])
    assert check(folder) == 1


def test_what_was_proved_is_said_when_the_majority_takes_too_long(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = Network.from_layers([([[1.0, 0, 0, 0, 0]], [-40.0])])
    folder = certify(tmp_path, Model(SPACE, network, Threshold(0.0)), PEOPLE[:1])
    assert check(folder, "--seconds", "-1") == 3
    assert "not checked: unfair: out of time; all but the fair decision was proved" in (
        capsys.readouterr().out
    )


def test_the_time_is_looked_at_while_counterparts_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = certify(tmp_path, Model(SPACE, hidden(), Threshold(-100.0)), PEOPLE[:1])
    (claim,) = claims_of(folder)
    stored = StoredModel(ModelFile(folder / "model.feta"))
    for seconds, proved in ((2.5, True), (1.5, False)):  # 120 counterparts: it looks twice
        clock = itertools.count()
        monkeypatch.setattr(time, "process_time", lambda clock=clock: next(clock))
        if proved:
            assert check_claim(stored, claim, seconds) == "fair"
        else:
            with pytest.raises(Unchecked, match=r"^out of time$"):
                check_claim(stored, claim, seconds)
