"""Equations of a structural causal model in words."""

from fractions import Fraction

from feta.relation.bands import Mapped, MappedGroup
from feta.relation.effects import Effect, Equation

# Amounts of a table that a sentence lists.
MAX_SHOWN = 6


def equation_words(equation: Equation) -> str:
    """Return an equation as a sentence."""
    if equation.mapped is not None:
        return f"{equation.column}: {_mapped_words(equation.mapped)}."
    effects = "; ".join(_effect_words(effect) for effect in equation.effects)
    return f"{equation.column}: {effects}."


def _effect_words(effect: Effect) -> str:
    if effect.kind == "slope":
        return f"{_signed(effect.slope)} per unit of {effect.parents[0]}"
    shown = [
        f"{_signed(amount)} if "
        + " and ".join(
            f"{name} is {cell}" for name, cell in zip(effect.parents, cells, strict=True)
        )
        for cells, amount in effect.amounts[:MAX_SHOWN]
    ]
    return ", ".join(shown) + (", …" if len(effect.amounts) > MAX_SHOWN else "")


def _mapped_words(mapped: Mapped) -> str:
    listed = "; ".join(_group_words(group) for group in mapped.groups[:MAX_SHOWN])
    more = "; …" if len(mapped.groups) > MAX_SHOWN else ""
    what = "any value of the same band" if mapped.kind == "bands" else "the same quantile"
    return f"{what}, by {listed}{more}"


def _group_words(group: MappedGroup) -> str:
    when = " and ".join(f"{name} in {', '.join(map(str, cells))}" for name, cells in group.when)
    if group.values:
        bands = ", ".join(f"{label} = {'/'.join(map(str, cells))}" for label, cells in group.values)
        return f"{when}: {bands}"
    return f"{when}: {', '.join(f'{value} {float(share):g}' for value, share in group.shares)}"


def _signed(number: Fraction) -> str:
    return f"{float(number):+.6g}"
