"""Types of the compiled module of tree ensembles; src/native documents it.

Wide integers are rows of two int64: the high and the low bits.
"""

from typing import final

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Doubles = NDArray[np.float64]
Ids = NDArray[np.uint64]
Integers = NDArray[np.int32]
Longs = NDArray[np.int64]

@final
class ForestResults:
    """The results of a query, one row per person."""

    counts: Ids  # (people, classes)
    runtime_safe: Bytes
    finished: Bytes
    has_match: Bytes
    assignment_ids: Ids
    costs: Ids
    undecided_ids: dict[int, Ids]  # only of people with undecided counterparts

@final
class ForestRows:
    """The trees of an ensemble, to find the leaves of rows."""

    def __init__(
        self,
        width: int,
        domains: int,
        roots: Longs,
        kind: Bytes,
        cut: Doubles,
        links: Longs,
        missing: Bytes,
        members: Bytes,
        /,
    ) -> None: ...
    def leaves(self, people: Doubles, indices: Longs, /) -> Longs: ...

@final
class ForestKernel:
    """An ensemble and a rule over a lattice: described first, then finished, then queried."""

    def __init__(self, columns: int, is_wide: bool, /) -> None: ...
    def add_nodes(
        self,
        roots: Integers,
        test: Bytes,
        cut: Doubles,
        links: Integers,
        missing: Bytes,
        members: Bytes,
        /,
    ) -> None: ...
    def add_axis(
        self, ordered: bool, stride: int, sizes: Ids, first: Ids, masks: Ids, /
    ) -> None: ...
    def add_domain(self, column: int, width: int, flag: int, numbers: Doubles, /) -> None: ...
    def set_leaves(self, leaves: Longs, base: Longs, unit: float, /) -> None: ...
    def set_replay(
        self,
        single: bool,
        divide: bool,
        terms: Doubles,
        sizes: Doubles,
        start: Doubles,
        base_sizes: Doubles,
        directions: Doubles,
        denominator: float,
        relative_error: float,
        /,
    ) -> None: ...
    def set_rule(
        self,
        kind: int,
        value: float,
        above: bool,
        chosen: int,
        classes: int,
        bounds: Longs,
        source_error: float,
        /,
    ) -> None: ...
    def set_limits(
        self, columns: Integers, low: Doubles, high: Doubles, integer: Bytes, groups: Integers, /
    ) -> None: ...
    def finish(self, max_set_bytes: int, /) -> None: ...
    def majority(
        self, people: Doubles, of_two: bool, ties_to_last: bool, threads: int, /
    ) -> Bools | Longs | None: ...
    def tally(
        self,
        people: Doubles,
        majority: bool,
        seconds: float,
        evaluations: int,
        threads: int,
        /,
    ) -> ForestResults: ...
    def tally_listed(
        self,
        people: Doubles,
        groups: Integers,
        votes: Ids,
        seconds: float,
        evaluations: int,
        threads: int,
        /,
    ) -> ForestResults: ...
    def find(
        self,
        people: Doubles,
        decisions: Integers,
        bands: Longs,
        centers: Doubles,
        half: float,
        seconds: float,
        evaluations: int,
        /,
    ) -> ForestResults: ...
    def worst(
        self,
        people: Doubles,
        directions: Doubles,
        kind: Integers,
        low: Longs,
        high: Longs,
        levels: Longs,
        floors: Longs,
        smallest: bool,
        seconds: float,
        evaluations: int,
        threads: int,
        /,
    ) -> ForestResults: ...
