"""Combinations of changes, the smallest total first, without listing all of them."""

import heapq
from collections.abc import Iterator, Sequence
from itertools import combinations
from math import fsum

# A total size, the columns that change, and the index of each one's new value.
Combination = tuple[float, tuple[int, ...], tuple[int, ...]]


def ascending(sizes: Sequence[Sequence[float]], n_columns: int) -> Iterator[Combination]:
    """Yield all combinations of changes of exactly this many columns in ascending order of size.

    The sizes of each column are in ascending order. A total is rounded once, so the order is that
    of the exact totals, up to totals that round to the same number.
    """
    subsets = [
        subset
        for subset in combinations(range(len(sizes)), n_columns)
        if all(sizes[column] for column in subset)
    ]
    return heapq.merge(*(_of_columns(sizes, subset) for subset in subsets))


def _of_columns(
    sizes: Sequence[Sequence[float]], columns: tuple[int, ...]
) -> Iterator[Combination]:
    """Yield the combinations of some columns; each one is reached from one other only."""
    mine = [sizes[column] for column in columns]

    def total(indices: tuple[int, ...]) -> Combination:
        chosen = [of_column[i] for of_column, i in zip(mine, indices, strict=True)]
        return fsum(chosen), columns, indices

    heap = [total((0,) * len(columns))]
    while heap:
        one = heapq.heappop(heap)
        yield one
        indices = one[2]
        last = max((place for place, index in enumerate(indices) if index), default=0)
        for place in range(last, len(indices)):
            if indices[place] + 1 < len(mine[place]):
                more = (*indices[:place], indices[place] + 1, *indices[place + 1 :])
                heapq.heappush(heap, total(more))
