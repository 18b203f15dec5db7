"""Columns of derived attributes: checks of their bands, and their values for rows of people."""

from collections.abc import Sequence

import numpy as np

from feta.arrays import Matrix, Vector
from feta.errors import DomainError, SchemaError
from feta.space.attribute import Attribute, Categorical, Derived, Real

# Source values that are checked at a time.
BLOCK = 2**16


def check_source(derived: Derived, source: Attribute) -> None:
    """Raise unless the bands of `derived` cover each value of `source` exactly once."""
    if isinstance(source, Categorical | Derived):
        raise SchemaError(
            f"invalid source of {derived.name!r}: got {source.name!r}; expected a column of numbers"
        )
    if source.missing:
        raise SchemaError(
            f"invalid source of {derived.name!r}: got {source.name!r}, which may be missing; "
            "expected a column that is never missing"
        )
    if isinstance(source, Real):
        if source.sensitive:
            raise SchemaError(
                f"invalid source of {derived.name!r}: got the sensitive real number "
                f"{source.name!r}; expected finitely many values; "
                f"declare {source.name!r} integer, or give a step"
            )
        return  # its values are checked row by row
    for start in range(0, source.n_values, BLOCK):
        indices = np.arange(start, min(start + BLOCK, source.n_values))
        _check_bands(derived, source.name, source.codes(indices)[:, 0])


def _check_bands(derived: Derived, source_name: str, values: Vector) -> None:
    n_bands = derived.derive(values).sum(axis=1)
    if (n_bands != 1).any():
        row = np.argmax(n_bands != 1)
        raise SchemaError(
            f"invalid bands for {derived.name!r}: got {int(n_bands[row])} bands for "
            f"{source_name} {values[row]:g}; expected exactly one"
        )


def derived_codes(derived: Derived, source_name: str, values: Vector) -> Matrix:
    """Return the columns for these source values; raise for a value without exactly one band."""
    codes = derived.derive(values)
    n_bands = codes.sum(axis=1)
    bad = np.flatnonzero(n_bands != 1)
    if bad.size:
        row = int(bad[0])
        what = (
            f"is invalid: got {int(n_bands[row])} bands for {source_name} {values[row]:g}; "
            "expected exactly one"
        )
        raise DomainError.at(derived.name, row, what)
    return codes


def compare_with_cells(derived: Derived, codes: Matrix, cells: Sequence[object]) -> None:
    """Raise unless the table's own cells agree with the derived columns."""
    for row, value in enumerate(cells):
        expected = derived.decode(codes[row])
        if value != expected:
            what = (
                f"is invalid: got {value!r}; expected {expected!r}, "
                f"which follows from {derived.source!r}"
            )
            raise DomainError.at(derived.name, row, what)
