import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import feta
from feta import FairPredictor, Model, Network, NetworkError, SchemaError, Threshold, Undecided
from feta.arrays import Matrix
from feta.comparing.blind_copy import Estimated, fit_blind
from feta.comparing.candidate import CountedModel, of_function
from feta.comparing.candidates import (
    FitPeople,
    NamedModel,
    PlannedCandidate,
    favorable_probability,
    planned,
)
from feta.comparing.model_comparison import Comparing, LabeledPeople
from feta.errors import DomainError
from tests.unit.metrics.planted import SPACE, aware_model, blind_model, draw_labels, planted

PEOPLE = planted(0.8, 600)
LABELS = draw_labels(PEOPLE) == 1


def plans(named: NamedModel) -> dict[str, PlannedCandidate]:
    fit = FitPeople(PEOPLE, LABELS, epochs=1, seed=0)
    return {plan.name: plan for plan in planned([named], fit)}


def no_advance(share: float) -> None:
    del share


def test_a_distilled_network_is_compared_as_soon_as_predictors_have_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[int, int]] = []

    def distil(predictor: FairPredictor, people: Matrix, *, seed: int) -> Model:
        assert predictor.vote == "mean_probability"
        seen.append((len(people), seed))
        return blind_model()

    monkeypatch.setattr(FairPredictor, "distil", distil, raising=False)
    candidate = plans(NamedModel("m", aware_model()))["m, distilled"].make(no_advance)
    assert seen == [(600, 0)]
    assert (candidate.decide(PEOPLE) == blind_model().decide(PEOPLE)).all()
    assert not candidate.unfair(PEOPLE).any()
    monkeypatch.delattr(FairPredictor, "distil")
    assert "m, distilled" not in plans(NamedModel("m", aware_model()))


def test_votes_are_scored_by_their_mean() -> None:
    candidates = plans(NamedModel("m", aware_model()))
    vote = candidates["m, fitted vote"].make(no_advance)
    share = PEOPLE[:, 1].mean()
    chances = [1 / (1 + np.exp(0.5 - PEOPLE[:, 4] - effect)) for effect in (0.0, 1.5)]
    expected = (1 - share) * chances[0] + share * chances[1]
    assert np.abs(vote.score(PEOPLE) - expected).max() < 0.05  # graded in steps
    majority = candidates["m, majority"].make(no_advance)
    both = [(PEOPLE[:, 4] + effect >= 0.5).astype(float) for effect in (0.0, 1.5)]
    assert (majority.score(PEOPLE) == (both[0] + both[1]) / 2).all()


def test_counterexamples_are_people_whose_counterparts_differ() -> None:
    model = CountedModel(aware_model())
    both = [PEOPLE[:, 4] + effect >= 0.5 for effect in (0.0, 1.5)]
    assert (model.unfair(PEOPLE) == (both[0] != both[1])).all()
    own = np.where(PEOPLE[:, 1] == 1, both[1], both[0])
    assert (model.decision_score(PEOPLE) == own).all()


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Threshold(0.0), 0.5),
        (Threshold.at_probability(0.8), 0.8),
        (Threshold.at_probability(0.8, "below"), 0.2),
    ],
)
def test_networks_decide_at_the_probability_of_the_model(rule: Threshold, expected: float) -> None:
    model = Model(SPACE, aware_model().scorer, rule)
    assert favorable_probability(model) == pytest.approx(expected)
    scores = Model(SPACE, Network.from_layers([([[0, 1, 0, 0, 1]], [0])]), Threshold(3.0))
    assert favorable_probability(scores) == 0.5  # scores that are no probabilities


def frame_of(people: Matrix) -> pd.DataFrame:
    return pd.DataFrame(people, columns=["f", "m", "a", "b", "merit"])


@pytest.mark.parametrize("classifier", [LogisticRegression(), LinearSVC()])
def test_a_blind_copy_never_depends_on_sensitive_columns(classifier: object) -> None:
    pipeline = make_pipeline(StandardScaler(), classifier).fit(frame_of(PEOPLE), LABELS)
    copy = fit_blind(Estimated(pipeline, frame_of, 1), SPACE, PEOPLE, LABELS)
    other = PEOPLE.copy()
    other[:, :2] = 1 - other[:, :2]
    assert (copy(other) == copy(PEOPLE)).all()
    without = make_pipeline(StandardScaler(), classifier).fit(PEOPLE[:, 2:], LABELS)
    same = (copy(PEOPLE) >= 0.5) == without.predict(PEOPLE[:, 2:])
    assert same.mean() > 0.99  # the fit without these columns, up to the solver's tolerance
    unfavorable = fit_blind(Estimated(pipeline, frame_of, 0), SPACE, PEOPLE, ~LABELS)
    assert ((unfavorable(PEOPLE) > 0.5) == (copy(PEOPLE) < 0.5)).mean() > 0.99


class Unfittable(LogisticRegression):  # type: ignore[misc]  # scikit-learn ships no types
    def fit(self, *_: object) -> None:
        raise RuntimeError("no second time")


def test_an_estimator_that_cannot_be_fitted_again_is_named() -> None:
    estimator = Unfittable()
    estimator.classes_ = np.array([False, True])
    message = "cannot be fitted without sensitive columns: got RuntimeError: no second time"
    with pytest.raises(NetworkError, match=message):
        fit_blind(Estimated(estimator, frame_of, 1), SPACE, PEOPLE, LABELS)


def test_a_candidate_that_leaves_people_undecided_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def undecided(people: Matrix) -> Matrix:
        raise Undecided((0,), f"one of {len(people)} people ties")

    good = of_function("good", "", lambda p: p[:, 4], level=0.0, aware=lambda p: p[:, 1])
    bad = of_function("bad", "", undecided, level=0.0, aware=lambda p: p[:, 1])
    chosen = [PlannedCandidate(one.name, lambda _, one=one: one) for one in (good, bad, good)]  # type: ignore[misc]  # a default
    monkeypatch.setattr("feta.comparing.model_comparison.planned", lambda *_: chosen)
    data = LabeledPeople.split(PEOPLE, LABELS, seed=0)
    work = Comparing([NamedModel("m", aware_model())], data, epochs=1, seed=0)
    shares: list[float] = []
    assert list(work.run(shares.append)) == ["good", "bad", "good"]
    assert [row.name for row in work.result.rows] == ["good", "good"]
    (left,) = work.result.left_out
    assert (left.name, left.undecided) == ("bad", True)
    assert work.result.finished
    assert shares == sorted(shares)
    chosen[0] = chosen[1]  # without the first row, there is nothing to compare with
    with pytest.raises(Undecided):
        list(Comparing([NamedModel("m", aware_model())], data, epochs=1, seed=0).run(no_advance))


@pytest.mark.parametrize(("n_people", "epochs"), [(250, 1024), (10_000, 50)])
def test_small_tables_get_more_epochs(n_people: int, epochs: int) -> None:
    assert FitPeople.enough_epochs(n_people) == epochs


def test_halves_are_disjoint_and_depend_on_the_seed_only() -> None:
    first, again, other = (LabeledPeople.split(PEOPLE, LABELS, seed) for seed in (1, 1, 2))
    assert sorted([*first.first, *first.second]) == list(range(600))
    assert (first.first == again.first).all()
    assert (first.first != other.first).any()


def test_one_class_in_the_fitted_half_is_refused() -> None:
    labels = np.zeros(600)
    labels[LabeledPeople.split(PEOPLE, LABELS, 0).second[0]] = 1
    with pytest.raises(DomainError, match="only one class in the half that is fitted to"):
        LabeledPeople.split(PEOPLE, labels, 0)


def test_real_valued_sensitive_columns_are_refused() -> None:
    space = feta.FeatureSpace((feta.Real("age", 0, 9, sensitive=True), feta.Real("pay", 0, 9)))
    model = Model(space, Network.from_layers([([[1.0, 1.0]], [-9.0])]), Threshold(0.0))
    people = np.random.default_rng(0).uniform(0, 9, (300, 2))
    data = LabeledPeople.split(people, people[:, 1] > 4, 0)
    with pytest.raises(SchemaError, match="a person has infinitely many counterparts"):
        Comparing([NamedModel("m", model)], data, epochs=1, seed=0)
