"""A smooth activation as the compiled kernel takes it."""

from typing import TYPE_CHECKING

import numpy as np

from feta.scorer.native import native
from feta.scorer.network.smooth.activation import Smooth
from feta.scorer.network.smooth.kernel_table import kernel_table

if TYPE_CHECKING:
    from feta._native import Flags
    from feta._native import Smooth as NativeSmooth


def native_smooth(activation: Smooth) -> "tuple[NativeSmooth, Flags]":
    """Return a function, and 1 for each neuron that it is applied to."""
    table, facts = kernel_table(activation.name, activation.parameter), activation.facts
    plain = Smooth(activation.name, activation.parameter)
    function = native.Smooth()
    if len(table.double):
        function.set_cells(table.inner, *table.firsts, table.single, table.double)
    function.set_windows(table.windows, table.reach, float(table.first_slope), table.slope_step)
    function.single_error, function.double_error = table.errors
    function.window_error = table.window_error
    function.source_error = facts.source_step / activation.parameter
    function.steepest, function.lift = float(plain.steepest[0]), float(plain.lift[0])
    function.largest_term = 1.0 if facts.bounded_terms else 0.0
    return function, activation.applies.astype(np.uint8)
