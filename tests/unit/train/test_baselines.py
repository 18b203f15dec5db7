import numpy as np
import pytest

import feta
from feta import Argmax, FairPredictor, Model, SchemaError, Threshold, Tolerance
from feta.rule import Rule
from feta.train.baselines import blind_logistic, majority
from feta.train.ce_fair import CEFairTrainer
from feta.train.chooser import choose_fair, train_candidates
from feta.train.lcifr import LCIFRTrainer
from feta.train.plain import PlainTrainer
from feta.train.split import Split
from feta.train.task import Task
from tests.extras import needs
from tests.unit.metrics.planted import aware_model, blind_model, draw_labels, planted
from tests.unit.train.people import CLASSES, LABELS, PEOPLE, SCORES, SPACE

THREE_CLASSES = Argmax(("a", "b", "c"))
BELOW = Threshold(0.0, favors="below")
CASES = [
    (Threshold(0.0), LABELS),
    (BELOW, LABELS),
    (Threshold(2.0), LABELS),
    (THREE_CLASSES, CLASSES),
]


@pytest.mark.parametrize(("rule", "labels"), CASES)
def test_the_majority_decides_the_same_for_everybody(rule: Rule, labels: np.ndarray) -> None:
    decisions = Model(SPACE, majority(SPACE, labels, rule=rule), rule).decide(PEOPLE)
    values, counts = np.unique(labels, return_counts=True)
    assert set(decisions.tolist()) == {values[np.argmax(counts)].item()}


@pytest.mark.parametrize(("rule", "labels"), [*CASES[:2], CASES[3]])
def test_a_blind_regression_learns_and_cannot_be_unfair(rule: Rule, labels: np.ndarray) -> None:
    model = Model(SPACE, blind_logistic(SPACE, PEOPLE, labels, rule=rule, strength=10.0), rule)
    assert np.mean(model.decide(PEOPLE) == labels) > 0.7
    assert feta.tally(model, PEOPLE).unanimous.all()


def test_a_blind_regression_accepts_scores_and_absent_classes() -> None:
    network = blind_logistic(SPACE, PEOPLE, SCORES, rule=Tolerance(0.1))
    assert np.corrcoef(network(PEOPLE)[:, 0], SCORES)[0, 1] > 0.6
    assert majority(SPACE, SCORES, rule=Tolerance(0.1))(PEOPLE)[0, 0] == SCORES.mean()
    two_classes = np.where(CLASSES == 1, 2, CLASSES)
    decisions = Model(
        SPACE, blind_logistic(SPACE, PEOPLE, two_classes, rule=THREE_CLASSES), THREE_CLASSES
    ).decide(PEOPLE)
    assert np.mean(decisions == two_classes) > 0.8


@needs("torch")
def test_lcifr_certifies_only_people_without_a_counterexample() -> None:
    trainer = LCIFRTrainer(SPACE, gamma=1.0, encoder=(8, 4), batch_size=16, epochs=30)
    run = trainer.train(PEOPLE, LABELS)
    model = Model(run.space, run.network)
    certified = run.certified(PEOPLE)
    unanimous = feta.tally(model, PEOPLE).unanimous
    assert (unanimous | ~certified).all()
    assert certified.mean() > 0
    assert np.mean(model.decide(PEOPLE) == LABELS) > 0.7
    assert [a.name for a in run.space.sensitive] == ["sex"]
    free = LCIFRTrainer(SPACE, gamma=1e-9, encoder=(8, 4), batch_size=16, epochs=30)
    assert free.train(PEOPLE, LABELS).certified(PEOPLE).mean() < certified.mean()


@needs("torch")
def test_lcifr_accepts_numbers_and_needs_a_varied_attribute() -> None:
    trainer = LCIFRTrainer(SPACE, attributes=("age", "sex"), encoder=(4,), epochs=2)
    shares: list[float] = []
    run = trainer.train(PEOPLE, LABELS, progress=shares.append)
    assert shares[-1] == 1.0
    assert run.space.lattice.size == 26
    assert len(run.encoder.layers) == 0
    with pytest.raises(SchemaError, match="no sensitive attribute is categorical"):
        _ = LCIFRTrainer(SPACE.with_sensitive(["age"])).varied


def test_the_most_accurate_fair_predictor_is_chosen_with_the_reason() -> None:
    right, wrong = (
        FairPredictor(Model(SPACE, feta.Network.from_layers([([[0, 0, 0, sign]], [-50.0 * sign])])))
        for sign in (1.0, -1.0)
    )
    choice = choose_fair({"wrong": wrong, "right": right}, PEOPLE, PEOPLE[:, 3] >= 50)
    assert (choice.name, choice.predictor) == ("right", right)
    assert choice.accuracies == {"wrong": 0.0, "right": 1.0}
    assert (
        choice.reason == "'right' is right for 100.0% of 160 people; all are fair for everybody by "
        "construction, so accuracy alone decides; next is 'wrong' with 0.0%"
    )
    figures = choice.figures["right"]
    assert figures.decisions.favorable.value == np.mean(PEOPLE[:, 3] >= 50)
    assert figures.reinference is None  # no candidate reads a sensitive column
    tied = choose_fair({"a": right, "b": right}, PEOPLE, LABELS)
    assert tied.name == "a"
    assert "which may be chance: one standard error is" in tied.reason
    single = choose_fair({"a": right}, PEOPLE, LABELS)
    assert "next" not in single.reason
    with pytest.raises(SchemaError, match="no candidates: got none; expected at least one"):
        choose_fair({}, PEOPLE, LABELS)


def test_the_choice_reports_level_gaps_and_reinference_of_every_candidate() -> None:
    people, labels = planted(0.8), draw_labels(planted(0.8))
    candidates = {"vote": FairPredictor(aware_model()), "blind": FairPredictor(blind_model())}
    choice = choose_fair(candidates, people, labels)
    (pair,) = choice.pairs
    assert (pair.attribute, set(pair.names)) == ("sex", {"f", "m"})
    vote, blind = choice.figures["vote"], choice.figures["blind"]
    own = blind_model().decide(people)
    members = people[:, 1 if pair.names[0] == "m" else 0] == 1
    expected = own[members].mean() - own[~members].mean()
    assert blind.decisions.gaps[0].value == pytest.approx(expected)
    assert vote.reinference is not None
    assert blind.reinference is not None
    assert vote.reinference.slope is not None
    assert blind.reinference.slope is not None
    # The blind model takes the town, which equals the sex in nearly nine of ten cases.
    assert blind.reinference.slope.value > vote.reinference.slope.value + 0.5
    assert choice.name == "blind"
    assert "of what a guess of the sensitive columns adds, which accuracy does not" in choice.reason


@needs("torch")
@pytest.mark.parametrize(("rule", "labels"), [CASES[0], CASES[3]])
@pytest.mark.filterwarnings("ignore:.*nearly constant")
def test_all_candidates_are_trained(rule: Rule, labels: np.ndarray) -> None:
    plain = PlainTrainer(
        SPACE, hidden=(4,), learning_rates=(0.03,), batch_sizes=(32,), epochs=5, rule=rule
    )
    split = Split.of(SPACE, Task(rule), PEOPLE, labels, validation=None, seed=0)
    shares: list[float] = []
    candidates = train_candidates(
        plain, CEFairTrainer(SPACE, epochs=2), split, progress=shares.append
    )
    expected = {
        "vote",
        "vote, empirical weights",
        "vote after CE-Fair",
        "blind network",
        "blind regression",
        "majority",
    }
    if rule.outputs == 1:
        expected.add("vote after span training")
    assert set(candidates) == expected
    assert shares == sorted(shares)
    choice = choose_fair(candidates, split.held, split.held_targets)
    assert choice.accuracies[choice.name] == max(choice.accuracies.values())
