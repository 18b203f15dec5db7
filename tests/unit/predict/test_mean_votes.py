"""Votes by means: exact at the cut-off, the same for all counterparts, fitted on other people."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from campaigns.vote_cases import KINDS, Kind, Means, random_model
from campaigns.votes import wrong_decisions, wrong_level
from feta import (
    Argmax,
    Categorical,
    EngineError,
    FairPredictor,
    FeatureSpace,
    Integer,
    Model,
    Network,
    NetworkError,
    OneVsRest,
    Real,
    SchemaError,
    Threshold,
    Tolerance,
    Undecided,
    VoteWeights,
    load_model,
    read_callable,
    save_model,
)
from feta.engine.protocol import Budget
from feta.vote.graded_ballot import UNIT, GradedBallot
from feta.vote.mean_decision import VoteName
from tests.strategies import random_person

SPACE = FeatureSpace(
    (
        Integer("age", 0, 3, sensitive=True),
        Categorical("sex", ("f", "m"), sensitive=True),
        Real("income", -100.0, 100.0),
    )
)


def model(*, age: float = 1.0, rule: Threshold | None = None) -> Model:
    """Return a model whose score is the income plus the age, plus 2 for men."""
    network = Network.from_layers([([[age, 0.0, 2.0, 1.0]], [0.0])]).with_link("logit")
    return Model(SPACE, network, rule or Threshold(0.0))


NETWORK_OF_THREE = Network.from_layers([(np.ones((3, 4)), [0.0, 1.0, 2.0])])


def people(*incomes: float, age: int = 0, sex: str = "f") -> np.ndarray:
    return np.array([SPACE.encode({"age": age, "sex": sex, "income": x})[0] for x in incomes])


@pytest.mark.parametrize("engine", ["exhaustive", "auto"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_means_agree_with_fractions(engine: str, kind: Kind, seed: int) -> None:
    rng = np.random.default_rng(seed)
    drawn = random_model(rng, kind)
    several = np.stack([random_person(rng, drawn.space) for _ in range(3)])
    assert not wrong_decisions(drawn, several, engine, rng)
    if drawn.rule.threshold is not None:
        assert not wrong_level(drawn, several, engine)


def test_a_mean_on_the_cut_off_is_favorable() -> None:
    # The mean of age is 1.5, of sex 1: the mean score is the income plus 2.5.
    predictor = FairPredictor(model(), vote="mean_score")
    below = float(np.nextafter(-2.5, -10))
    assert predictor.decide(people(-2.5, below, -2.0)).tolist() == [True, False, True]
    predictor = FairPredictor(model(rule=Threshold(0.0, "below")), vote="mean_score")
    above = float(np.nextafter(-2.5, 10))
    assert predictor.decide(people(-2.5, above, -3.0)).tolist() == [True, False, True]


@pytest.mark.parametrize("vote", ["mean_score", "mean_probability"])
def test_all_counterparts_get_the_same_decision(vote: VoteName) -> None:
    predictor = FairPredictor(model(), vote=vote)
    incomes = np.linspace(-4, 1, 40)
    first = predictor.decide(people(*incomes))
    assert 0 < first.sum() < len(first)
    for age in range(4):
        for sex in ("f", "m"):
            assert (predictor.decide(people(*incomes, age=age, sex=sex)) == first).all()
    for row, income in enumerate(incomes):  # alone, as in a batch
        assert predictor.decide(people(income))[0] == first[row]


def test_the_grade_of_a_threshold_counts_from_the_threshold_on() -> None:
    ballot = GradedBallot(np.array([0.0, 1.0]), np.array([0, UNIT // 4, UNIT]))
    single = FeatureSpace((Integer("age", 0, 0, sensitive=True), Real("x", -9.0, 9.0)))
    network = Network.from_layers([([[0.0, 1.0]], [0.0])]).with_link("logit")
    own = Model(single, network, threshold=0.0)
    rows = np.array([[0.0, x] for x in (-1e-300, 0.0, np.nextafter(1.0, 0), 1.0)])
    for level, expected in ((0.25, [0, 1, 1, 1]), (0.2501, [0, 0, 0, 1]), (1.0, [0, 0, 0, 1])):
        predictor = FairPredictor(own, vote="mean_probability", level=level, ballot=ballot)
        assert predictor.decide(rows).tolist() == [bool(flag) for flag in expected]


def test_the_mean_is_shown_rounded() -> None:
    predictor = FairPredictor(model(), vote="mean_score")
    assert predictor.means(people(-2.5, 0.0)).means.tolist() == pytest.approx([0.0, 2.5])
    probable = FairPredictor(model(age=0.0), vote="mean_probability").means(people(-1.0))
    expected = (1 / (1 + np.exp(1.0)) + 1 / (1 + np.exp(-1.0))) / 2
    assert probable.means[0] == pytest.approx(expected, abs=1e-3)


def test_without_a_level_the_models_threshold_decides() -> None:
    at = Threshold.at_probability(0.8)
    predictor = FairPredictor(model(age=0.0, rule=at), vote="mean_probability")
    means = Means(model(age=0.0), None, GradedBallot.even("logit"))
    expected = means.of(people(1.0)[0], "mean_probability")[0]
    assert predictor.decide(people(1.0))[0] == (expected >= Fraction(0.8))


def test_fitted_votes_keep_the_share_of_favorable_decisions() -> None:
    rng = np.random.default_rng(3)
    crowd = np.concatenate(
        [
            people(float(x), age=int(rng.integers(4)), sex=str(rng.choice(["f", "m"])))
            for x in rng.normal(-3, 3, 300)
        ]
    )
    own = int(model().decide(crowd).sum())
    for predictor in (
        FairPredictor.fitted(model(), crowd, "mean_score"),
        FairPredictor.fitted(model(), crowd),
    ):
        assert abs(int(predictor.decide(crowd).sum()) - own) <= 1
        assert predictor.weights is not None
        assert predictor.weights.total == len(crowd)
    assert predictor.ballot is not None
    assert len(predictor.ballot.thresholds) > 600


def test_equal_weights_and_the_own_threshold_can_be_asked_for() -> None:
    crowd = people(*np.linspace(-5, 5, 20))
    predictor = FairPredictor.fitted(model(), crowd, "mean_score", "equal", "threshold")
    assert (predictor.weights, predictor.level) == (None, None)
    assert FairPredictor.fitted(model(), crowd, "mean_score", "equal", 1.25).level == 1.25
    assert FairPredictor.fitted(model(), crowd, "majority", "equal").level is None


def test_people_of_rare_assignments_vote_for_the_nearest_stored_one() -> None:
    common = [people(0.0, age=0, sex="f")] * 5 + [people(0.0, age=3, sex="m")] * 6
    rare = [people(0.0, age=3, sex="f"), people(0.0, age=2, sex="m"), people(0.0, age=1, sex="m")]
    weights = VoteWeights.from_people(SPACE, np.concatenate([*common, *rare]), least=5)
    # A category counts more than any number: a woman of age 3 votes as the women of age 0.
    assert weights.assignment_ids.tolist() == [0, 7]
    assert weights.votes.tolist() == [6, 8]
    with pytest.raises(SchemaError, match="no sensitive assignment has 5 people: got at most 1"):
        VoteWeights.from_people(SPACE, np.concatenate(rare), least=5)


def test_a_budget_leaves_people_undecided() -> None:
    predictor = FairPredictor(model(), "exhaustive", Budget(evaluations=3), vote="mean_score")
    assert not predictor.means(people(0.0)).decided[0]
    with pytest.raises(Undecided):
        predictor.decide(people(0.0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vote": "mean"}, "invalid vote: got 'mean'"),
        ({"level": 0.5}, "a majority has no level: got 0.5"),
        ({"vote": "mean_score", "level": float("nan")}, "invalid level: got nan"),
        (
            {"vote": "mean_score", "ballot": GradedBallot.even("logit")},
            "the vote 'mean_score' has no ballot",
        ),
    ],
)
def test_an_invalid_vote_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        FairPredictor(model(), **options)  # type: ignore[arg-type]


def test_a_vote_that_does_not_fit_the_model_is_refused() -> None:
    network = Network.from_layers([([[1.0, 0.0, 2.0, 1.0]], [0.0])])
    plain = Model(SPACE, network, threshold=0.0)
    with pytest.raises(SchemaError, match="the model has no probabilities"):
        FairPredictor(plain, vote="mean_probability")
    with pytest.raises(SchemaError, match="the model has no probabilities"):
        FairPredictor.fitted(plain, people(0.0), "mean_probability", least=1)
    regression = Model(SPACE, network, Tolerance(1.0))
    with pytest.raises(SchemaError, match=r"'mean_probability' does not fit .* use vote='mean_sc"):
        FairPredictor(regression, vote="mean_probability")
    with pytest.raises(SchemaError, match=r"for the level 0\.5; omit the level"):
        FairPredictor(regression, vote="mean_score", level=0.5)
    three = Model(SPACE, NETWORK_OF_THREE, Argmax(("a", "b", "c")))
    with pytest.raises(SchemaError, match="the model has no probabilities"):
        FairPredictor(three, vote="mean_probability")
    with pytest.raises(SchemaError, match="expected two decisions by a threshold for a ballot"):
        FairPredictor(three, vote="mean_probability", ballot=GradedBallot.even("logit"))
    with pytest.raises(SchemaError, match="the level does not fit: got level='keep'"):
        FairPredictor.fitted(three, people(0.0), "mean_score", level="keep", least=1)
    with pytest.raises(SchemaError, match="invalid weights: got 'emprical'"):
        FairPredictor.fitted(model(), people(0.0), weights="emprical")  # type: ignore[arg-type]


def test_settings_that_need_people_are_refused_without_them() -> None:
    with pytest.raises(SchemaError, match="weights without people: got weights='empirical'"):
        FairPredictor(model(), weights="empirical")  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="a level without people: got level='keep'"):
        FairPredictor(model(), vote="mean_score", level="keep")  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="votes without people: got 0 people"):
        FairPredictor.fitted(model(), people(0.0)[:0])


def test_defaults_adapt_to_the_model_with_a_warning() -> None:
    crowd = people(*np.linspace(-5, 5, 20))
    network = Network.from_layers([([[1.0, 0.0, 2.0, 1.0]], [0.0])])
    with pytest.warns(UserWarning, match="the mean score: the model's scores are no probabilities"):
        plain = FairPredictor.fitted(Model(SPACE, network, threshold=0.0), crowd)
    assert plain.vote == "mean_score"
    assert plain.level is not None
    three = Model(SPACE, NETWORK_OF_THREE.with_link("logit"), Argmax(("a", "b", "c")))
    with pytest.warns(UserWarning, match="no level: the model has several classes"):
        several = FairPredictor.fitted(three, crowd)
    assert (several.vote, several.level) == ("mean_probability", None)
    with pytest.warns(UserWarning, match="the mean score: the model has no decisions"):
        regression = FairPredictor.fitted(Model(SPACE, network, Tolerance(1.0)), crowd)
    assert regression.vote == "mean_score"
    labels = read_callable(
        lambda frame: np.where(frame["income"] > 0, "yes", "no"), SPACE, classes=["no", "yes"]
    )
    with pytest.warns(UserWarning, match="the weighted majority: the model returns labels only"):
        voted = FairPredictor.fitted(Model(SPACE, labels), crowd)
    assert (voted.vote, voted.level) == ("majority", None)
    assert voted.weights is not None
    with pytest.raises(SchemaError, match=r"'mean_score' does not fit .* labels only"):
        FairPredictor.fitted(Model(SPACE, labels), crowd, "mean_score")


def test_the_mean_of_a_regression_is_rounded_once() -> None:
    third = Network.from_layers([([[0.1, 0.7, -0.3, 1.0]], [1 / 3])])
    predictor = FairPredictor(Model(SPACE, third, Tolerance(1.0)), vote="mean_score")
    weights = [Fraction(float(w)) for w in (0.1, 0.7, -0.3)]
    ages = sum(weights[0] * age for age in range(4)) / 4
    expected = ages + (weights[1] + weights[2]) / 2 + Fraction(1 / 3)
    for income in (0.0, 0.1, -17.3):
        exact = float(expected + Fraction(income))
        assert predictor.decide(people(income)).tolist() == [exact]
    with pytest.raises(EngineError, match="medians are for a regression without a mean"):
        predictor.medians(people(0.0))
    undecided = replace(predictor, budget=Budget(evaluations=3))
    assert not undecided.means(people(0.0)).decided[0]


def test_the_first_of_equal_means_wins() -> None:
    # Classes a and b have equal scores; c is lower on average, but highest for old people.
    scores = [([[0.0, 0, 0, 1], [0.0, 0, 0, 1], [2.0, 0, 0, 1]], [2.0, 2.0, -2.0])]
    network = Network.from_layers(scores).with_link("logit")
    three = Model(SPACE, network, Argmax(("a", "b", "c")))
    votes: tuple[VoteName, ...] = ("mean_score", "mean_probability")
    for vote in votes:
        predictor = FairPredictor(three, vote=vote)
        assert predictor.decide(people(0.0, 5.0)).tolist() == [0, 0]
        assert predictor.means(people(0.0)).means.shape == (1, 3)
    chosen = Model(SPACE, network, OneVsRest(("a", "b", "c"), "b"))
    assert FairPredictor(chosen, vote="mean_score").decide(people(0.0)).tolist() == [False]


def test_each_vote_has_its_own_counts() -> None:
    with pytest.raises(EngineError, match="votes are for a majority"):
        FairPredictor(model(), vote="mean_score").votes(people(0.0))
    with pytest.raises(EngineError, match="means are for a vote by means"):
        FairPredictor(model()).means(people(0.0))


@pytest.mark.parametrize("vote", ["majority", "mean_score", "mean_probability"])
def test_a_file_keeps_the_votes(vote: VoteName, tmp_path: Path) -> None:
    crowd = np.concatenate([people(*np.linspace(-6, 2, 30), age=age) for age in range(4)])
    predictor = FairPredictor.fitted(model(), crowd, vote)
    save_model(predictor, tmp_path / "model.feta")
    loaded = FairPredictor.load(tmp_path / "model.feta")
    assert (loaded.vote, loaded.level) == (vote, predictor.level)
    assert loaded.fitted_on == predictor.fitted_on != ""
    assert (loaded.decide(crowd) == predictor.decide(crowd)).all()
    assert load_model(tmp_path / "model.feta").fingerprint == model().fingerprint


def test_a_file_without_votes_has_the_equal_majority(tmp_path: Path) -> None:
    for saved in (model(), FairPredictor(model())):
        save_model(saved, tmp_path / "model.feta")
        loaded = FairPredictor.load(tmp_path / "model.feta")
        assert (loaded.vote, loaded.level, loaded.weights) == ("majority", None, None)


def test_changed_votes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.feta"
    save_model(FairPredictor.fitted(model(), people(*np.linspace(-6, 2, 30))), path)
    content = path.read_bytes()
    for old, new in (
        (b'\\"vote\\": \\"mean_prob', b'\\"vote\\": \\"mean_prib'),
        (b"0x1.", b"0x2."),
    ):
        assert old in content
        path.write_bytes(content.replace(old, new, 1))
        with pytest.raises(NetworkError, match="does not match its fingerprint"):
            FairPredictor.load(path)


@pytest.mark.parametrize(
    ("thresholds", "grades"),
    [
        ([1.0, 0.0], [0, 1, 2]),
        ([0.0], [0, 1, 2]),
        ([0.0], [2, 1]),
        ([0.0], [0, UNIT + 1]),
        ([np.inf], [0, 1]),
        ([], [0]),
    ],
)
def test_an_invalid_ballot_is_refused(thresholds: list[float], grades: list[int]) -> None:
    with pytest.raises(SchemaError, match="invalid ballot"):
        GradedBallot(np.array(thresholds), np.array(grades))
