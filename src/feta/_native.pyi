"""Types of the compiled module; src/native documents it."""

from typing import final

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Ids = NDArray[np.uint64]
Flags = NDArray[np.uint8]
Integers = NDArray[np.int32]

def instruction_sets() -> list[str]: ...
def allow_instructions(name: str, /) -> None: ...

@final
class Results:
    """The results of a query, one row per person."""

    counts: Ids  # (people, classes)
    runtime_safe: Flags
    finished: Flags
    has_match: Flags
    assignment_ids: Ids
    bounded_nodes: Ids
    scored_points: Ids
    real_values: Doubles  # of a real-valued attribute, and the scores there
    best_scores: Doubles
    upper_bounds: Doubles
    undecided_ids: dict[int, Ids]  # only of people with undecided counterparts

@final
class NodeBounds:
    """Bounds of nodes and scores of points of one person."""

    low: Doubles  # (nodes, outputs)
    high: Doubles
    backward_low: Doubles  # (nodes), of a single score
    backward_high: Doubles
    below: Ids  # (nodes), of a single score: how many counterparts linear forms decide
    above: Ids
    not_below: dict[int, Ids]  # by node, if any: the assignment ids that they do not decide
    not_above: dict[int, Ids]
    source_errors: Doubles  # (outputs)
    errors32: Doubles
    errors64: Doubles
    scores32: Doubles  # (points, outputs)
    scores64: Doubles

@final
class Tree:
    """The tree of one attribute: nodes, and the values in leaf order."""

    order: Integers
    begin: Integers
    end: Integers
    left: Integers
    right: Integers
    center: Doubles  # (nodes, neurons)
    generator: Doubles
    rest: Doubles

@final
class MeanVote: ...

@final
class Smooth:
    """A smooth function; spec.hpp describes its arrays and errors."""

    single_error: float
    double_error: float
    window_error: float
    source_error: float
    steepest: float
    lift: float
    largest_term: float
    def __init__(self) -> None: ...
    def set_cells(
        self, inner: float, first32: int, first64: int, single: Doubles, doubles: Doubles, /
    ) -> None: ...
    def set_windows(
        self, windows: Doubles, reach: float, first_slope: float, slope_step: float, /
    ) -> None: ...

@final
class Kernel:
    def __init__(self, bias: Doubles, cancelled_magnitude: Doubles, columns: int, /) -> None: ...
    def add_axis(self, terms: Doubles, magnitudes: Doubles, /) -> None: ...
    def add_real_axis(self, low: float, high: float, slopes: Doubles, /) -> None: ...
    def set_shared(
        self,
        width: int,
        columns: Integers,
        slopes: Doubles,
        low: Doubles,
        high: Doubles,
        integer: Flags,
        group: Integers,
        /,
    ) -> None: ...
    def add_layer(
        self,
        breaks: Doubles,
        slopes: Doubles,
        intercepts: Doubles,
        weight: Doubles,
        bias: Doubles,
        cancelled_magnitude: Doubles,
        /,
    ) -> None: ...
    def add_smooth_layer(
        self,
        smooth: Smooth,
        on: Flags,
        weight: Doubles,
        bias: Doubles,
        cancelled_magnitude: Doubles,
        /,
    ) -> None: ...
    def set_rule(
        self, kind: int, value: float, above: bool, chosen: int, outputs: int, classes: int, /
    ) -> None: ...
    def set_source(
        self, unit: float, tiny: float, huge: float, extra_roundings: int, source_error: float, /
    ) -> None: ...
    def set_forms_from(self, counterparts: int, /) -> None: ...
    def finish(self, simd: bool, /) -> None: ...
    def tally(
        self,
        constants: Doubles,
        magnitudes: Doubles,
        majority: bool,
        seconds: float,
        evaluations: int,
        nodes: int,
        threads: int,
        /,
    ) -> Results: ...
    def tally_listed(
        self,
        constants: Doubles,
        magnitudes: Doubles,
        assignment_ids: Ids,
        votes: Ids,
        majority: bool,
        seconds: float,
        evaluations: int,
        threads: int,
        /,
    ) -> Results: ...
    def find(
        self,
        constants: Doubles,
        magnitudes: Doubles,
        reference: Integers,
        centers: Doubles,
        half: float,
        seconds: float,
        evaluations: int,
        nodes: int,
        /,
    ) -> Results: ...
    def worst(
        self,
        constants: Doubles,
        magnitudes: Doubles,
        directions: Doubles,
        offsets: Doubles,
        kind: Integers,
        floors: Doubles,
        approximate: bool,
        smallest: bool,
        seconds: float,
        evaluations: int,
        threads: int,
        /,
    ) -> Results: ...
    def worst_real(
        self,
        constants: Doubles,
        magnitudes: Doubles,
        signs: Doubles,
        floors: Doubles,
        seconds: float,
        evaluations: int,
        threads: int,
        /,
    ) -> Results: ...
    def majority(
        self, rows: Doubles, of_two: bool, ties_to_last: bool, nodes: int, threads: int, /
    ) -> NDArray[np.bool_] | NDArray[np.int64] | None: ...
    def mean_vote(
        self,
        assignment_ids: Ids,
        votes: Ids,
        thresholds: Doubles,
        grades: Doubles,
        above: bool,
        edge: float,
        /,
    ) -> MeanVote: ...
    def means(self, rows: Doubles, vote: MeanVote, threads: int, /) -> Integers | None: ...
    def tree(self, axis: int, /) -> Tree: ...
    def node_bounds(
        self, constants: Doubles, magnitudes: Doubles, nodes: Integers, points: Integers, /
    ) -> NodeBounds: ...
