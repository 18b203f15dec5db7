"""Error messages of the kernel's bindings."""

import re
from typing import Any

import numpy as np
import pytest

native = pytest.importorskip("feta._native")


@pytest.mark.parametrize(
    ("constants", "magnitudes", "message"),
    [
        (np.zeros((4, 2)), np.zeros((4, 2)), "(4, 2) and (4, 2)"),
        (np.zeros((4, 3)), np.zeros((5, 3)), "(4, 3) and (5, 3)"),
        (np.zeros(3), np.zeros(3), "(3) and (3)"),
    ],
)
def test_arrays_of_other_shapes_are_rejected(
    constants: np.ndarray, magnitudes: np.ndarray, message: str
) -> None:
    kernel = native.Kernel(np.zeros(3), np.zeros(3), 1)
    expected = rf"^invalid shape of constants or magnitudes: got {re.escape(message)}; expected "
    with pytest.raises(ValueError, match=expected + r"\(people, 3\)$"):
        kernel.worst_real(constants, magnitudes, np.ones(1), np.zeros(1), -1.0, 0, 1)


def kernel_of_one_axis() -> Any:  # noqa: ANN401 - compiled
    kernel = native.Kernel(np.zeros(3), np.zeros(3), 1)
    kernel.add_axis(np.ones((2, 3)), np.ones((2, 3)))
    piece = np.ones((1, 1))
    kernel.add_layer(np.zeros((0, 1)), piece, 0 * piece, np.ones((1, 3)), np.ones(1), np.zeros(1))
    return kernel


def test_queries_need_a_finished_kernel_and_a_finished_kernel_does_not_change() -> None:
    kernel = kernel_of_one_axis()
    people = (np.ones((1, 3)), np.ones((1, 3)))
    with pytest.raises(ValueError, match="call finish first"):
        kernel.tally(*people, False, -1.0, 0, 0, 1)
    with pytest.raises(ValueError, match="call finish first"):
        kernel.majority(np.ones((1, 1)), True, False, 0, 1)
    kernel.finish(True)
    assert kernel.tally(*people, False, -1.0, 0, 0, 1).counts.tolist() == [[0, 2]]
    for change in (
        lambda: kernel.add_axis(np.ones((2, 3)), np.ones((2, 3))),
        lambda: kernel.set_rule(0, 0.5, True, 0, 1, 2),
        lambda: kernel.finish(True),
    ):
        with pytest.raises(ValueError, match="the kernel is finished"):
            change()  # type: ignore[no-untyped-call]


def test_descriptions_of_other_shapes_and_nan_are_rejected() -> None:
    def layer(**changes: np.ndarray) -> None:
        parts = {
            "breaks": np.zeros((0, 1)),
            "slopes": np.ones((1, 1)),
            "intercepts": np.zeros((1, 1)),
            "weight": np.ones((2, 1)),
            "bias": np.zeros(2),
            "cancelled": np.zeros(2),
        }
        kernel_of_one_axis().add_layer(*(parts | changes).values())

    layer()
    for changes in (
        {"breaks": np.zeros((1, 1))},
        {"slopes": np.ones((1, 2))},
        {"intercepts": np.zeros(1)},
        {"weight": np.ones((2, 3))},
        {"weight": np.full((2, 1), np.nan)},
        {"bias": np.zeros(3)},
        {"cancelled": np.array([0.0, np.inf])},
    ):
        with pytest.raises(ValueError, match="invalid "):
            layer(**changes)
    kernel = native.Kernel(np.zeros(3), np.zeros(3), 1)
    for terms in (np.ones((2, 4)), np.ones(3), np.ones((0, 3)), np.full((2, 3), np.nan)):
        with pytest.raises(ValueError, match="invalid "):
            kernel.add_axis(terms, np.ones((2, 3)))
    with pytest.raises(ValueError, match="as many outputs"):
        kernel.finish(True)


def test_queries_of_other_shapes_and_nan_are_rejected() -> None:
    kernel = kernel_of_one_axis()
    kernel.finish(True)
    one, two = np.ones((1, 3)), np.ones((2, 3))
    ids = np.array([0, 1], dtype=np.uint64)
    limits = (-1.0, 0)
    directions, kind = np.ones((1, 1, 1)), np.zeros(1, dtype=np.int32)
    for call in (
        lambda: kernel.tally(np.full((1, 3), np.nan), one, False, *limits, 0, 1),
        lambda: kernel.tally_listed(one, one, ids, ids[:1], False, *limits, 1),
        lambda: kernel.tally_listed(one, one, ids + np.uint64(1), ids, False, *limits, 1),
        lambda: kernel.find(two, two, kind, np.zeros(2), 0.0, *limits, 0),
        lambda: kernel.worst(
            one, one, directions, np.zeros((1, 2)), kind, np.zeros(1), False, False, *limits, 1
        ),
        lambda: kernel.worst(
            one, one, directions, np.zeros((1, 1)), kind + 1, np.zeros(1), False, False, *limits, 1
        ),
        lambda: kernel.worst_real(one, one, np.ones(1), np.zeros(1), *limits, 1),
        lambda: kernel.mean_vote(ids, ids[:1], np.zeros(0), np.zeros(0), True, 0.0),
        lambda: kernel.node_bounds(one, one, kind[None, :] + 3, kind[None, :]),
    ):
        with pytest.raises(ValueError, match="invalid "):
            call()  # type: ignore[no-untyped-call]
