"""Selection: the epoch nearest to the ideal, accuracy 1 and CE rate 0."""

from collections.abc import Sequence


def nearest_to_ideal(points: Sequence[tuple[float, float]]) -> int:
    """Choose among (accuracy, CE rate) pairs; the first of equals.

    The appendix calls the ideal "Nadir"; it is the utopia point, the best of both.
    """
    distances = [(1.0 - accuracy) ** 2 + ce_rate**2 for accuracy, ce_rate in points]
    return distances.index(min(distances))


def undominated(points: Sequence[tuple[float, float]]) -> list[int]:
    """List the pairs that no other beats in one and equals in the other: the Pareto front."""
    return [
        index
        for index, (accuracy, rate) in enumerate(points)
        if not any(
            one >= accuracy and other <= rate and (one, other) != (accuracy, rate)
            for one, other in points
        )
    ]
