from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from feta import Categorical, FeatureSpace, Integer, Model, Network, Real, Threshold
from feta.arrays import Matrix
from feta.checker.box import Box
from feta.checker.criterion import Criterion
from feta.checker.evaluators import evaluator_of
from feta.checker.leaf import MAX_BOXES, MAX_SCORED, leaf_objection
from feta.checker.network_bounds import BoxBounds
from feta.checker.sensitive_axis import axes_of
from feta.scorer.protocol import Objective

SPACE = FeatureSpace(
    (
        Integer("n", 0, 2**20, sensitive=True),
        Real("x", 0.0, 8.0, sensitive=True),
        Categorical("c", ("a", "b"), sensitive=True),
    )
)
PERSON = np.array([0.0, 0.0, 1.0, 0.0])
OBJECTIVE = Objective(np.array([[1.0]]))
WIDE = 2.0**20


class Answers:
    """Fake bounds that always answer the same, or by a function, and record the boxes."""

    def __init__(self, answer: Callable[[Box], BoxBounds | None] | BoxBounds | None) -> None:
        self.answer = answer
        self.boxes: list[tuple[tuple[float, ...], tuple[float, ...]]] = []

    def over(self, box: Box, objective: Objective) -> BoxBounds | None:
        assert isinstance(objective, Objective)
        self.boxes.append((box.lower, box.upper))
        return self.answer(box) if callable(self.answer) else self.answer


class Scored:
    """Fake criterion that objects to some people, and records all of them."""

    def __init__(self, objects: Callable[[Matrix], bool] | None = None) -> None:
        self.objects = objects
        self.people: list[list[float]] = []

    def objection(self, people: Matrix) -> str:
        self.people += people.tolist()
        return "an objection" if self.objects is not None and self.objects(people) else ""


def known(*influences: int | Fraction, agrees: bool = False, is_affine: bool = False) -> BoxBounds:
    return BoxBounds(agrees, is_affine, tuple(map(Fraction, influences or (1, 1, 1))))


AXES = axes_of(Model(SPACE, Network.from_layers([(np.ones((1, 4)), [0.0])]), threshold=0.0))


def box_of(n: tuple[float, float], x: tuple[float, float], c: tuple[float, float]) -> Box:
    return Box(AXES, (n[0], x[0], c[0]), (n[1], x[1], c[1]))


def objection(leaf: Box, bounds: Answers, scored: Scored, objective: Objective = OBJECTIVE) -> str:
    return leaf_objection(
        leaf,
        PERSON,
        bounds=bounds,
        objective=objective,
        criterion=scored,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("n_values", [1, 31, 32, 33])
def test_a_few_counterparts_are_scored_and_more_are_bounded(n_values: int) -> None:
    """Two categories each."""
    bounds, scored = Answers(known(agrees=True)), Scored()
    leaf = box_of((5.0, 4.0 + n_values), (3.0, 3.0), (0.0, 1.0))
    assert objection(leaf, bounds, scored) == ""
    if 2 * n_values <= MAX_SCORED:
        assert scored.people == [
            [n, 3.0, *c] for n in range(5, 5 + n_values) for c in ([1.0, 0.0], [0.0, 1.0])
        ]
        assert bounds.boxes == []
    else:
        assert scored.people == []
        assert bounds.boxes == [(leaf.lower, leaf.upper)]
    assert MAX_SCORED == 64


def test_an_objection_to_a_counterpart_is_returned() -> None:
    leaf = box_of((5.0, 9.0), (3.0, 3.0), (0.0, 1.0))
    scored = Scored(lambda people: 7.0 in people[:, 0])
    assert objection(leaf, Answers(None), scored) == "an objection"


def test_an_undecided_box_is_split_where_the_bound_moves_most() -> None:
    """It is split along x until its width is 2, then along n, then it agrees."""

    def answer(box: Box) -> BoxBounds:
        if box.upper[1] - box.lower[1] > 2:
            return known(2, 3, 5)  # the category is fixed and cannot be cut
        return known(2, 1, 5, agrees=box.upper[0] < WIDE)

    bounds = Answers(answer)
    leaf = box_of((WIDE - 200, WIDE), (0.0, 8.0), (1.0, 1.0))
    scored = Scored()
    # A part with WIDE never agrees; its corners do not count, because it is not affine.
    assert objection(leaf, bounds, scored).startswith("a cell that the bounds leave undecided")
    assert bounds.boxes[:3] == [
        ((WIDE - 200, 0.0, 1.0), (WIDE, 8.0, 1.0)),
        ((WIDE - 200, 4.0, 1.0), (WIDE, 8.0, 1.0)),
        ((WIDE - 200, 6.0, 1.0), (WIDE, 8.0, 1.0)),
    ]
    assert bounds.boxes[3] == ((WIDE - 99, 6.0, 1.0), (WIDE, 8.0, 1.0))
    assert scored.people == []


def test_both_halves_are_decided() -> None:
    bounds = Answers(lambda box: known(1, 5, 1, agrees=box.upper[1] - box.lower[1] <= 2))
    leaf = box_of((0.0, 99.0), (0.0, 8.0), (0.0, 1.0))
    assert objection(leaf, bounds, Scored()) == ""
    quarters = [box for box in bounds.boxes if box[1][1] - box[0][1] == 2.0]
    assert sorted(box[0][1] for box in quarters) == [0.0, 2.0, 4.0, 6.0]
    assert len(bounds.boxes) == 7


def test_a_finite_box_is_split_until_it_can_be_scored() -> None:
    bounds, scored = Answers(known(9, 0, 1)), Scored()
    leaf = box_of((1.0, 100.0), (3.0, 3.0), (0.0, 1.0))
    assert objection(leaf, bounds, scored) == ""
    assert sorted(row[0] for row in scored.people if row[2] == 1.0) == list(range(1, 101))
    assert len(scored.people) == 200
    assert [upper[0] - lower[0] + 1 for lower, upper in bounds.boxes] == [100, 50, 50]


def test_a_box_that_cannot_be_bounded_is_split_along_its_longest_side() -> None:
    bounds, scored = Answers(None), Scored()
    leaf = box_of((1.0, 100.0), (3.0, 3.0), (0.0, 1.0))
    assert objection(leaf, bounds, scored) == ""
    assert len(bounds.boxes) == 3
    assert len(scored.people) == 200


@pytest.mark.parametrize("least", [False, True])
@pytest.mark.parametrize("n_values", [16, 17])
@pytest.mark.parametrize("is_affine", [False, True])
def test_the_corners_decide_an_affine_box(n_values: int, *, is_affine: bool, least: bool) -> None:
    """Two ends of x and two categories; with `least`, decisions form no convex set."""
    leaf = box_of((0.0, n_values - 1.0), (2.0, 3.0), (0.0, 1.0))
    bounds, scored = Answers(known(is_affine=is_affine)), Scored()
    result = objection(leaf, bounds, scored, replace(OBJECTIVE, least=least))
    if is_affine and not least and n_values == 16:
        assert result == ""
        assert scored.people == [
            [n, x, *c] for n in range(16) for x in (2.0, 3.0) for c in ([1.0, 0.0], [0.0, 1.0])
        ]
        assert len(bounds.boxes) == 1
    elif is_affine and not least:
        assert result == ""
        assert len(bounds.boxes) == 3  # the box and its halves
    else:
        assert result.startswith("a cell that the bounds leave undecided, from [0.0, 2.0, 0.0]")


def test_an_objection_at_a_corner_is_returned() -> None:
    leaf = box_of((0.0, 3.0), (2.0, 3.0), (0.0, 1.0))
    bounds = Answers(known(is_affine=True))
    scored = Scored(lambda people: bool((people[:, 1] == 3.0).any()))
    assert objection(leaf, bounds, scored) == "an objection"


def test_a_box_that_cannot_be_cut_remains_undecided() -> None:
    leaf = box_of((4.0, 4.0), (1.0, float(np.nextafter(1.0, 2))), (0.0, 0.0))
    bounds = Answers(known())
    assert objection(leaf, bounds, Scored()) == (
        "a cell that the bounds leave undecided, from [4.0, 1.0, 0.0] to "
        "[4.0, 1.0000000000000002, 0.0]"
    )
    assert len(bounds.boxes) == 1


@pytest.mark.parametrize("extra", [False, True])
def test_a_leaf_has_a_limited_number_of_parts(*, extra: bool) -> None:
    """Ten halvings give 2047 parts; one more cut gives 2049."""

    def answer(box: Box) -> BoxBounds:
        width = 2.0**-8 if extra and box.lower[1] == 0.0 else 2.0**-7
        return known(0, 1, 0, agrees=box.upper[1] - box.lower[1] <= width)

    bounds = Answers(answer)
    leaf = box_of((0.0, 99.0), (0.0, 8.0), (0.0, 0.0))
    result = objection(leaf, bounds, Scored())
    if extra:
        assert result == (
            "a cell that the bounds leave undecided, from [0.0, 0.0, 0.0] to [99.0, 8.0, 0.0]"
        )
        assert len(bounds.boxes) == MAX_BOXES
    else:
        assert result == ""
        assert len(bounds.boxes) == MAX_BOXES - 1
    assert MAX_BOXES == 2048


def test_real_bounds_and_scores() -> None:
    """relu(x − 1) + relu(1 − x) is |x − 1|: below 1.25 on [0, 2], but its chords give more."""
    space = FeatureSpace((Real("x", 0.0, 2.0, sensitive=True), Real("y", 0.0, 1.0)))
    layers = [
        ([[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0]], [-1.0, 1.0, -0.5]),
        ([[1.0, 1.0, -0.5]], [0.0]),
    ]
    model = Model(space, Network.from_layers(layers), threshold=0.0)
    person = np.array([1.0, 0.0])
    evaluator = evaluator_of(model)
    axes = axes_of(model)
    bounds = evaluator.bounds(axes, person)
    whole = Box.whole(axes)
    # The largest score is 1 at x = 0; −1/2·relu(x − 1/2) is bounded above by −1/2·(x − 1/2).
    for level, result in ((1.0 + 2**-20, ""), (1.0 - 2**-20, "a counterpart with a different")):
        rule = Threshold(level)
        reference = evaluator.scores(person[None, :])
        criterion = Criterion(model, evaluator, rule.comparator(reference))
        found = leaf_objection(
            whole,
            person,
            bounds=bounds,
            objective=rule.objective(reference),
            criterion=criterion,
        )
        assert found.startswith(result)
        assert bool(found) == bool(result)
