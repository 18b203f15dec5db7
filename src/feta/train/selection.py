"""Selection of epochs by accuracy and CE rate."""

from collections.abc import Sequence


def nearest_to_ideal(points: Sequence[tuple[float, float]]) -> int:
    """Return the index of the (accuracy, CE rate) pair nearest to (1, 0); the first of equals.

    The appendix calls the ideal "Nadir"; it is the utopia point, the best of both.
    """
    distances = [(1.0 - accuracy) ** 2 + ce_rate**2 for accuracy, ce_rate in points]
    return distances.index(min(distances))


def undominated(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return the indices of the Pareto front of (accuracy, CE rate) pairs."""
    return [
        index
        for index, (accuracy, rate) in enumerate(points)
        if not any(
            other_accuracy >= accuracy
            and other_rate <= rate
            and (other_accuracy, other_rate) != (accuracy, rate)
            for other_accuracy, other_rate in points
        )
    ]
