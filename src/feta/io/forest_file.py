"""Tree ensembles in model files: plain arrays, and the facts about their source."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from feta.arrays import Array
from feta.errors import NetworkError
from feta.scorer.forest.forest import Forest
from feta.scorer.forest.summation import Summation
from feta.scorer.forest.trees import Domain, Numbers, OneHot, Trees

# The arrays of trees, and the type in which each is stored.
TREE_ARRAYS = {
    "roots": np.int64,
    "kind": np.int8,
    "source": np.int64,
    "cut": np.float64,
    "flag": np.int64,
    "missing_left": np.uint8,
    "start": np.int64,
    "left": np.int64,
    "right": np.int64,
    "values": np.float64,
    "members": np.uint8,
}


def describe_forest(forest: Forest) -> dict[str, Any]:
    """Return the facts about an ensemble that are not arrays."""
    summation = forest.summation
    return {
        "width": forest.width,
        "denominator": forest.denominator,
        "equality": forest.equality,
        "link": forest.link,
        "reading": forest.provenance,
        "domains": [_describe_domain(domain) for domain in forest.trees.domains],
        "summation": {
            "library": summation.library,
            "format": summation.format,
            "divide": summation.divide,
            "around_start": summation.around_start,
            "weighted": summation.weights is not None,
        },
    }


def forest_arrays(forest: Forest) -> dict[str, Array]:
    """Return the arrays of an ensemble."""
    trees, summation = forest.trees, forest.summation
    arrays = {name: getattr(trees, name).astype(kind) for name, kind in TREE_ARRAYS.items()}
    arrays |= {"base": forest.base, "directions": forest.directions, "begin": summation.start}
    if summation.weights is not None:
        arrays["weights"] = summation.weights
    for index, domain in enumerate(trees.domains):
        if isinstance(domain, Numbers):
            arrays[f"domain{index}.numbers"] = domain.numbers
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def build_forest(facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> Forest:
    """Return the ensemble of a file; its own checks reject arrays that do not fit."""
    for name, kind in TREE_ARRAYS.items():
        if arrays[name].dtype != kind:
            raise NetworkError(
                f"unsupported type of the array {name!r}: got {arrays[name].dtype}; "
                f"expected {np.dtype(kind)}"
            )
    trees = {name: arrays[name] for name in TREE_ARRAYS}
    trees |= {name: arrays[name].astype(bool) for name in ("missing_left", "members")}
    domains = tuple(
        _build_domain(entry, arrays.get(f"domain{index}.numbers"))
        for index, entry in enumerate(facts["domains"])
    )
    added = facts["summation"]
    return Forest(
        Trees(**trees, domains=domains),
        arrays["base"],
        Summation(
            str(added["library"]),
            added["format"],
            arrays["begin"],
            arrays["weights"] if added["weighted"] else None,
            divide=bool(added["divide"]),
            around_start=bool(added["around_start"]),
        ),
        int(facts["width"]),
        arrays["directions"],
        int(facts["denominator"]),
        facts["equality"],
        facts["link"],
        facts["reading"],
    )


def _describe_domain(domain: Domain) -> dict[str, int]:
    match domain:
        case OneHot(first=first, width=width):
            return {"first": first, "width": width}
        case Numbers(column=column, flag=flag):
            return {"column": column, "flag": flag}


def _build_domain(entry: Mapping[str, Any], numbers: Array | None) -> Domain:
    if numbers is None:
        return OneHot(int(entry["first"]), int(entry["width"]))
    return Numbers(int(entry["column"]), numbers, int(entry["flag"]))
