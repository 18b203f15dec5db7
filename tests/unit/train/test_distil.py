"""Distilled networks: no counterexample by inspection, and the vote's level and decisions."""

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pandas as pd
import pytest
from onnx.reference import ReferenceEvaluator

import feta
from feta import (
    Argmax,
    Categorical,
    Derived,
    DomainError,
    FairPredictor,
    FeatureSpace,
    Integer,
    Levels,
    Model,
    Network,
    Real,
    SchemaError,
    Threshold,
    Tolerance,
)
from feta.arrays import Matrix
from feta.train import distil as module
from feta.train.distil import Distilled, distil
from feta.train.distil_report import DistilReport
from tests import oracle
from tests.counted import OPTIONS
from tests.extensions.toys import Grown
from tests.extras import needs
from tests.forests import random_forest

# Every kind of column: missing values, bands of a sensitive and of another column, levels.
SPACE = FeatureSpace(
    (
        Integer("age", 18, 22, sensitive=True),
        Derived("young", "age", (("yes", 18, 19), ("no", 20, 22))),
        Categorical("sex", ("f", "m"), sensitive=True, missing=True),
        Levels("grade", (1.0, 1.5, 4.0), sensitive=True, missing=True),
        Real("income", 0, 10),
        Integer("rooms", 1, 4, missing=True),
        Categorical("home", ("own", "rent"), missing=True),
        Derived("rich", "income", (("yes", 5, 10), ("no", 0, float(np.nextafter(5, 0))))),
    )
)
# The same columns without bands, for random trees.
BARE = FeatureSpace(tuple(a for a in SPACE.attributes if not isinstance(a, Derived)))
QUICK = {"hidden": (8,), "epochs": 30}


def draw(rng: np.random.Generator, n_people: int) -> Matrix:
    records = [
        {
            "age": int(rng.integers(18, 23)),
            "sex": ("f", "m", None)[rng.integers(3)],
            "grade": (1.0, 1.5, 4.0, None)[rng.integers(4)],
            "income": float(rng.uniform(0, 10)),
            "rooms": (1, 2, 3, 4, None)[rng.integers(5)],
            "home": ("own", "rent", None)[rng.integers(3)],
        }
        for _ in range(n_people)
    ]
    return SPACE.encode(records)


PEOPLE = draw(np.random.default_rng(0), 400)


def bare(people: Matrix) -> Matrix:
    """Return people without the columns of bands."""
    columns = [SPACE.columns_of(attribute) for attribute in BARE.attributes]
    return np.hstack([people[:, part] for part in columns])


def linear(*, rule: Threshold | None = None, income: float = 1.0) -> Model:
    """Return a model that reads income, rooms, and the sensitive columns."""
    slopes = np.zeros((1, SPACE.width))
    for name, slope in (("income", income), ("rooms", 0.3), ("age", 0.2), ("grade", 0.3)):
        slopes[0, SPACE.columns_of(SPACE.attribute(name)).start] = slope
    slopes[0, SPACE.columns_of(SPACE.attribute("sex"))] = (0.0, 1.0, 0.5)
    network = Network.from_layers([(slopes, [-10.5])]).with_link("logit")
    return Model(SPACE, network, rule or Threshold(0.0), outcomes=("refused", "granted"))


def quickly(predictor: FairPredictor, people: Matrix = PEOPLE, **options: object) -> Distilled:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an agreement that is too low is another test
        return distil(predictor, people, **(QUICK | options))  # type: ignore[arg-type]  # options


def counted_model() -> Model:
    def predict(frame: pd.DataFrame) -> np.ndarray:
        male = (frame["sex"] == "m").to_numpy(float)
        return frame["income"].to_numpy() + 2 * male > 6

    return Model(SPACE, feta.read_callable(predict, SPACE, options=OPTIONS))


def forest_model() -> Model:
    forest = random_forest(np.random.default_rng(5), BARE)
    return Model(BARE, forest, Threshold(float(np.median(forest(bare(PEOPLE))))))


def predictors() -> dict[str, FairPredictor]:
    model = linear()
    return {
        "majority": FairPredictor(model),
        "mean score": FairPredictor.fitted(model, PEOPLE, "mean_score", least=1),
        "mean probability": FairPredictor.fitted(model, PEOPLE, least=1),
        "below": FairPredictor.fitted(
            linear(rule=Threshold(0.0, "below")), PEOPLE, "mean_score", least=1
        ),
        "one class of several": FairPredictor(classes().one_vs_rest("much")),
        "forest": FairPredictor(forest_model()),
        "forest, mean score": FairPredictor.fitted(
            forest_model(), bare(PEOPLE), "mean_score", "equal", "threshold"
        ),
        "counted": FairPredictor(counted_model()),
    }


def classes() -> Model:
    slopes = np.zeros((3, SPACE.width))
    slopes[:, SPACE.columns_of(SPACE.attribute("income")).start] = (0.0, 1.0, 2.0)
    slopes[:, SPACE.columns_of(SPACE.attribute("sex")).start] = (0.0, 0.5, 0.0)
    names = ("little", "some", "much")
    return Model(SPACE, Network.from_layers([(slopes, [0.0, -3.0, -10.0])]), Argmax(names))


def check_blind(model: Model, people: Matrix) -> None:
    """Compare all counterparts that the oracle lists, in exact arithmetic and in decisions."""
    assert not model.network.first.tables
    assert not model.network.first.slopes[:, model.space.sensitive_columns].any()
    for person in people:
        others = oracle.counterparts(model, person)
        scores = oracle.scores(model, person)
        assert all(oracle.scores(model, other) == scores for other in others)
        assert len(set(model.decide(np.array(others)).tolist())) == 1


@needs("torch")
@pytest.mark.parametrize("name", predictors())
def test_no_distilled_network_has_a_counterexample(name: str) -> None:
    predictor, trees = predictors()[name], name.startswith("forest")
    people = PEOPLE[:120] if name == "counted" else PEOPLE
    people = bare(people) if trees else people
    result = quickly(predictor, people)
    others = draw(np.random.default_rng(1), 4)
    check_blind(result.model, bare(others) if trees else others)
    assert result.report.n_trained + result.report.n_held_out == len(people)
    assert result.report.agreement > (0.5 if trees else 0.75)  # after a short training
    assert result.model.outcomes == predictor.model.outcomes
    assert feta.tally(result.model, people[:20]).unanimous.all()


@needs("torch")
@pytest.mark.parametrize("name", ["majority", "mean score", "mean probability", "below"])
def test_the_level_and_the_decisions_are_those_of_the_vote(name: str) -> None:
    predictor = predictors()[name]
    result = quickly(predictor, hidden=(16, 16), epochs=200, seed=3)
    fair, order = predictor.decide(PEOPLE), np.random.default_rng([3, 5]).permutation(len(PEOPLE))
    held, trained = order[:80], order[80:]
    decisions = result.model.decide(PEOPLE)
    assert decisions[trained].sum() == fair[trained].sum()
    assert result.report.agreement == np.mean(decisions[held] == fair[held]) > 0.95
    assert result.report.kept == np.mean(decisions[held][fair[held]])
    assert result.report.confirmed == np.mean(fair[held][decisions[held]])
    assert result.report.level == np.mean(decisions[held])
    assert result.report.fair_level == np.mean(fair[held])


@needs("torch")
def test_several_classes_are_imitated() -> None:
    model = classes()
    result = quickly(FairPredictor(model), hidden=(16,), epochs=200)
    check_blind(result.model, PEOPLE[:4])
    assert result.model.rule == model.rule
    assert result.report.agreement > 0.9
    assert (result.report.kept, result.report.level) == (None, None)


@needs("torch")
def test_sensitive_values_are_never_read() -> None:
    predictor = FairPredictor.fitted(linear(), PEOPLE, least=1)
    ignored, other = PEOPLE.copy(), PEOPLE.copy()
    ignored[:, SPACE.sensitive_columns] = np.nan
    other[:, SPACE.sensitive_columns] = PEOPLE[::-1, SPACE.sensitive_columns]
    fingerprints = {
        quickly(predictor, people).model.fingerprint for people in (PEOPLE, ignored, other)
    }
    assert len(fingerprints) == 1


@needs("torch")
def test_the_network_depends_on_the_seed_and_not_on_labels() -> None:
    predictor = FairPredictor.fitted(linear(), PEOPLE, least=1)
    labels = PEOPLE[:, SPACE.columns_of(SPACE.attribute("income")).start] > 5
    first = quickly(predictor)
    again = quickly(predictor, labels=labels)
    assert first.model.fingerprint == again.model.fingerprint
    assert quickly(predictor, seed=1).model.fingerprint != first.model.fingerprint
    held = np.random.default_rng([0, 5]).permutation(len(PEOPLE))[:80]
    decisions = again.model.decide(PEOPLE)[held]
    assert (first.report.accuracy, first.report.fair_accuracy) == (None, None)
    assert again.report.accuracy == np.mean(decisions == labels[held])
    assert again.report.fair_accuracy == np.mean(predictor.decide(PEOPLE)[held] == labels[held])


@needs("torch")
def test_the_method_of_a_predictor_returns_the_model() -> None:
    predictor = FairPredictor.fitted(linear(), PEOPLE, least=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = predictor.distil(PEOPLE, hidden=(8,), epochs=30)
    assert model.fingerprint == quickly(predictor).model.fingerprint


@needs("torch")
@pytest.mark.parametrize("name", ["mean probability", "below"])
def test_a_distilled_network_is_written_read_and_stored(name: str, tmp_path: Path) -> None:
    model = quickly(predictors()[name]).model
    feta.save_model(model, tmp_path / "model.feta")
    assert feta.load_model(tmp_path / "model.feta").fingerprint == model.fingerprint
    assert feta.write_onnx(model, tmp_path / "model.onnx") == "float64"
    session = ReferenceEvaluator(onnx.load(tmp_path / "model.onnx"))
    (output,) = session.run(None, {"people": PEOPLE})
    scores = np.asarray(output)[:, 0]
    clear = np.abs(scores) > 1e-9  # sums in another order
    favorable = scores > 0 if model.rule.favors == "above" else scores < 0
    assert clear.mean() > 0.99
    assert (model.decide(PEOPLE) == favorable)[clear].all()
    read = Model(SPACE, feta.read_onnx(tmp_path / "model.onnx"), model.rule)
    check_blind(read, PEOPLE[:2])


@needs("torch")
def test_progress_reaches_the_end() -> None:
    shares: list[float] = []
    quickly(FairPredictor(linear()), progress=shares.append)
    assert len(shares) == 30
    assert shares[-1] == 1.0


@needs("torch")
@pytest.mark.parametrize("income", [0.0, 1e6])
def test_a_vote_that_decides_everybody_equally_is_imitated(income: float) -> None:
    model = linear(income=income)
    people = PEOPLE[PEOPLE[:, SPACE.columns_of(SPACE.attribute("income")).start] > 1]
    predictor = FairPredictor(model, vote="mean_score", level=100.0)
    fair = predictor.decide(people)
    assert len(set(fair.tolist())) == 1
    result = quickly(predictor, people)
    assert result.report.agreement == 1.0
    assert (result.report.kept is None) == (not fair.any())


@needs("torch")
def test_a_poor_imitation_is_named() -> None:
    predictor = FairPredictor(linear())
    expected = r"poor imitation of the fair decisions: got .* on 80 held-out people; expected 97%"
    with pytest.warns(UserWarning, match=expected):
        distil(predictor, PEOPLE, hidden=(1,), epochs=1)


@pytest.mark.parametrize("seed", range(40))
def test_the_cut_is_at_the_nearest_number_of_people(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 5, int(rng.integers(1, 12))).astype(float)  # many ties
    wanted = int(rng.integers(0, len(scores) + 1))
    number = int((scores >= module._cut(scores, wanted)).sum())
    possible = {int((scores >= cut).sum()) for cut in (*scores.tolist(), 9.0)}
    assert number == min(possible, key=lambda n: (abs(n - wanted), -n))


def test_scores_that_differ_by_rounding_are_not_separated() -> None:
    scores = np.array([3.0, 1.0, np.nextafter(1.0, 0), np.nextafter(1.0, 2), 0.0])
    assert (scores >= module._cut(scores, 2)).sum() == 1
    assert (scores >= module._cut(scores, 3)).sum() == 4


@pytest.mark.parametrize("level", [0.01, 0.19])
def test_targets_have_the_side_of_the_decision_and_are_moderate_on_the_smaller_side(
    level: float,
) -> None:
    means = np.linspace(0.001, 0.2, 200)  # few people are favorable, or few are not
    favorable = means >= level
    targets = module._targets(means, favorable)
    assert ((targets > 0.5) == favorable).all()
    assert (np.diff(targets) >= 0).all()
    smaller = favorable if level > 0.1 else ~favorable
    middle = 1 / (1 + np.exp(-1 / module.UNIT))  # at the median distance
    expected = middle if level > 0.1 else 1 - middle
    assert np.median(targets[smaller]) == pytest.approx(expected, abs=0.02)
    assert module._targets(np.zeros(3), np.ones(3, bool)).tolist() == [1, 1, 1]


def test_a_report_compares_two_decisions_with_labels() -> None:
    decisions, fair = np.array([1, 1, 0, 0, 0], bool), np.array([1, 0, 1, 0, 0], bool)
    report = DistilReport.of(
        decisions, fair, np.array([1.0, 0, 0, 1, 0]), n_trained=20, two_sided=True
    )
    assert report == DistilReport(20, 5, 0.6, 0.5, 0.5, 0.4, 0.4, 0.6, 0.6)
    assert "of 60.0%, 50.0%, 50.0% on 5 held-out people; expected 97% and 90%" in report.warning
    good = replace(report, agreement=0.97, kept=0.9, confirmed=None)
    assert not good.warning
    assert "of 97.0%, 89.0% on 5" in replace(good, kept=0.89).warning
    assert "of 96.9%, 90.0% on 5" in replace(good, agreement=0.969).warning


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"hidden": ()},
            SchemaError,
            r"invalid hidden: got \(\); expected the width of one hidden layer or more",
        ),
        (
            {"hidden": (0,)},
            SchemaError,
            "invalid width of a hidden layer: got 0; expected an integer above 0",
        ),
        (
            {"held_out": 0.0},
            SchemaError,
            "invalid held_out: got 0.0; expected a number above 0 and below 1",
        ),
        (
            {"held_out": 0.99},
            DomainError,
            "too few people: got 400 with held_out=0.99; expected at least 20, and 10 of them for",
        ),
        ({"epochs": 0}, SchemaError, "invalid epochs: got 0; expected an integer above 0"),
        (
            {"labels": [2] * 400},
            DomainError,
            "invalid label in row 0: got 2; expected an integer from 0 to 1",
        ),
    ],
)
def test_invalid_options_are_refused(
    options: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        quickly(FairPredictor(linear()), PEOPLE, **options)


def test_too_few_people_and_people_outside_the_space_are_refused() -> None:
    predictor = FairPredictor(linear())
    with pytest.raises(DomainError, match=r"too few people: got 19 with held_out=0.2; expected at"):
        distil(predictor, PEOPLE[:19])
    with pytest.raises(DomainError, match=r"'income' is invalid: got .*; expected a number from 0"):
        distil(predictor, PEOPLE + 100)


def test_what_a_blind_network_cannot_imitate_is_refused() -> None:
    regression = Model(SPACE, linear().network.with_link("identity"), Tolerance(1.0))
    with pytest.raises(
        SchemaError, match=r"for decisions: got a regression, Tolerance.*; expected"
    ):
        distil(FairPredictor(regression), PEOPLE)
    only = FeatureSpace((Integer("age", 18, 30, sensitive=True),))
    model = Model(only, Network.from_layers([([[1.0]], [-20.0])]))
    with pytest.raises(SchemaError, match="a blind network needs a column that is not sensitive"):
        distil(FairPredictor(model), np.full((30, 1), 20.0))
    grown = FairPredictor(replace(linear(), relation=Grown(20), threshold=None))
    with pytest.raises(SchemaError, match=r"sensitive columns only: got the relation Grown"):
        distil(grown, PEOPLE)
