"""Ensembles in model files: their members one after the other, and the numbers of their curves."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from feta.arrays import Array
from feta.errors import NetworkError, unknown_choice
from feta.scorer.ensemble.curve import Curve
from feta.scorer.ensemble.curves import Chosen, ClassVote, Interpolation, Pair, SideVote
from feta.scorer.ensemble.ensemble import Ensemble, Member
from feta.scorer.ensemble.probability import Sigmoid, Softmax
from feta.scorer.protocol import Scorer, Side

Numbers = Mapping[str, Array]

SIDES: dict[int, Side | None] = {-1: None, 0: "below", 1: "above"}

CURVES: dict[str, Callable[[Numbers], Curve]] = {
    "chosen": lambda numbers: Chosen(int(numbers["index"]), int(numbers["inputs"])),
    "class vote": lambda numbers: ClassVote(int(numbers["classes"])),
    "interpolation": lambda numbers: Interpolation(numbers["at"], numbers["values"]),
    "pair": lambda _: Pair(),
    "side vote": lambda numbers: SideVote(SIDES[int(numbers["ties"])]),
    "sigmoid": lambda numbers: Sigmoid(float(numbers["slope"]), float(numbers["offset"])),
    "softmax": lambda numbers: Softmax(int(numbers["classes"]), float(numbers["factor"])),
}


def describe_ensemble(
    ensemble: Ensemble, describe: Callable[[Scorer], dict[str, Any]]
) -> dict[str, Any]:
    """Return the facts about an ensemble that are not arrays; `describe` is for one member."""
    return {
        "name": ensemble.name,
        "equality": ensemble.equality,
        "link": ensemble.link,
        "denominator": str(ensemble.denominator),  # an integer of any size
        "members": [
            describe(member.scorer) | {"curves": [curve.kind for curve in member.curves]}
            for member in ensemble.members
        ],
    }


def ensemble_arrays(
    ensemble: Ensemble, arrays_of: Callable[[Scorer], dict[str, Array]]
) -> dict[str, Array]:
    """Return the arrays of an ensemble and of its members."""
    arrays = {name: np.array(a, order="C") for name, a in ensemble.own_numbers().items()}
    del arrays["denominator"]
    for index, scorer in enumerate(ensemble.scorers):
        prefix = _prefix(index)
        arrays |= {prefix + name: array for name, array in arrays_of(scorer).items()}
    return arrays


def build_ensemble(
    facts: Mapping[str, Any],
    arrays: Mapping[str, Array],
    build: Callable[[dict[str, Any], dict[str, Array]], Scorer],
) -> Ensemble:
    """Return the ensemble of a file; `build` returns one member's scorer."""
    members = tuple(
        Member(
            build(entry, _below(_prefix(index), arrays)),
            tuple(
                _build_curve(kind, _below(f"member{index}.curve{place}.", arrays))
                for place, kind in enumerate(entry["curves"])
            ),
        )
        for index, entry in enumerate(facts["members"])
    )
    return Ensemble(
        members,
        arrays["weights"],
        arrays["bias"],
        int(facts["denominator"]),
        str(facts["name"]),
        facts["equality"],
        facts["link"],
    )


def _prefix(index: int) -> str:
    return f"member{index}.scorer."


def _below(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def _build_curve(kind: str, numbers: Numbers) -> Curve:
    if kind not in CURVES:
        raise NetworkError(f"unsupported curve in the file: {unknown_choice(kind, CURVES)}")
    return CURVES[kind](numbers)
