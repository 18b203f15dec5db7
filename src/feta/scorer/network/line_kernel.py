"""The compiled search along one real-valued sensitive attribute."""

import math
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Vector
from feta.relation.protocol import Relation
from feta.scorer.kernel import Limits, LinePoint
from feta.scorer.network.native_kernel import (
    LONGEST_AXIS,
    MAX_COUNTERPARTS,
    AxisTerms,
    RealTerms,
    fits,
    fits_line,
    kernel_of,
)
from feta.space.axis import Axis
from feta.space.feature_space import FeatureSpace

if TYPE_CHECKING:
    from feta.scorer.network.evaluation import Tabulated
    from feta.scorer.network.network import Network


def real_axis(relation: Relation) -> Axis | None:
    """Return the real-valued axis, if there is exactly one."""
    reals = [axis for axis in relation.axes if axis.real]
    return reals[0] if len(reals) == 1 else None


def fits_line_kernel(network: "Network", relation: Relation, space: FeatureSpace) -> bool:
    """Return whether the kernel can follow this network: one score, one real-valued axis."""
    real = real_axis(relation)
    if real is None or network.outputs != 1:
        return False
    lengths = [len(axis) for axis in relation.axes if not axis.real]
    short = max(lengths, default=1) <= LONGEST_AXIS and math.prod(lengths) < MAX_COUNTERPARTS
    return short and fits_line(*real.ends) and fits(network, space.magnitudes)


class NetworkLine:
    """A network in the kernel, with its real-valued axis as a line."""

    def __init__(self, tabulated: "Tabulated", *, source_error: float, simd: bool) -> None:
        self.tabulated, self.axes = tabulated, tabulated.relation.axes
        network = tabulated.network
        terms: list[AxisTerms] = [
            RealTerms(*axis.ends, network.first.slopes[:, axis.columns[0]])
            if axis.real
            else tabulated.axis_terms(index, np.arange(len(axis)))
            for index, axis in enumerate(self.axes)
        ]
        self._native = kernel_of(network, terms, source_error=source_error)
        self._native.finish(simd)

    def follow(self, person: Vector, *, sign: float, limits: Limits) -> LinePoint:
        """Find the highest score, or the lowest for a negative sign."""
        values, sizes = self.tabulated.shared_terms(person[None, :])
        result = self._native.worst_real(
            np.ascontiguousarray(values),
            np.ascontiguousarray(sizes),
            np.array([sign]),
            np.array([-np.inf]),
            limits.seconds,
            limits.evaluations,
            1,
        )
        counterpart = None
        if result.has_match[0]:
            counterpart = self._counterpart(
                person, int(result.assignment_ids[0]), float(result.real_values[0])
            )
        return LinePoint(counterpart, float(result.upper_bounds[0]), bool(result.finished[0]))

    def _counterpart(self, person: Vector, assignment_id: int, value: float) -> Vector:
        """Return the counterpart at a point; ids omit the real-valued axis."""
        lengths = [1 if axis.real else len(axis) for axis in self.axes]
        coordinates = np.unravel_index(assignment_id, lengths)
        counterpart = np.array(person)
        for axis, coordinate in zip(self.axes, coordinates, strict=True):
            at = np.array([value]) if axis.real else np.array([coordinate])
            counterpart[list(axis.columns)] = axis.codes(at)[0]
        return counterpart
