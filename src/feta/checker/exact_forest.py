"""Exact scores of a tree ensemble, from its stored numbers alone: one tree at a time."""

from dataclasses import dataclass

import numpy as np

from feta.arrays import Array, Matrix
from feta.checker.integers import exact
from feta.dyadic import Dyadic
from feta.errors import CertificateError
from feta.scorer.exact_scores import ExactScores
from feta.scorer.protocol import StoredScorer

# The name of these stored numbers, and the kinds of nodes.
TREE_ENSEMBLE = "tree ensemble"
LEAF, CUT = 0, 1

# The arrays of every ensemble; there are more for each domain.
ARRAYS = (
    "roots",
    "kind",
    "source",
    "cut",
    "flag",
    "missing_left",
    "start",
    "left",
    "right",
    "values",
    "members",
    "base",
    "directions",
    "denominator",
)


@dataclass(frozen=True, slots=True, eq=False)
class StoredForest:
    """The arrays as lists of Python numbers, which are compared and added without rounding."""

    nodes: dict[str, list[float]]
    domains: tuple[dict[str, Array], ...]
    values: Dyadic  # (nodes, sums)
    base: Dyadic  # (sums,)
    directions: list[list[int]]  # (outputs, sums)
    denominator: int

    @classmethod
    def of(cls, stored: StoredScorer) -> "StoredForest":
        """Convert the arrays that `Forest.stored` describes."""
        arrays = stored.arrays
        domains: list[dict[str, Array]] = []
        while any(name.startswith(f"domain{len(domains)}.") for name in arrays):
            prefix = f"domain{len(domains)}."
            domains.append(
                {name.removeprefix(prefix): a for name, a in arrays.items() if prefix in name}
            )
        known = {*ARRAYS, *(f"domain{n}.{name}" for n, part in enumerate(domains) for name in part)}
        if known != set(arrays):
            raise CertificateError(
                f"unknown arrays in what is re-checked: got {sorted(set(arrays) ^ known)}; "
                "expected the arrays of a tree ensemble"
            )
        nodes = {name: arrays[name].tolist() for name in ARRAYS[:9]} | {
            "members": arrays["members"].tolist()
        }
        return cls(
            nodes,
            tuple(domains),
            exact(arrays["values"]),
            exact(arrays["base"]),
            [[int(sign) for sign in row] for row in arrays["directions"].tolist()],
            int(arrays["denominator"]),
        )

    def scores(self, people: Matrix) -> ExactScores:
        """Compute the scores of one or more people, (people, outputs)."""
        exponent = min(self.values.exponent, self.base.exponent)
        values, base = self.values.at(exponent), self.base.at(exponent)
        rows = []
        for person in people.tolist():
            sums = list(base)
            for root in self.nodes["roots"]:
                leaf = self._leaf(int(root), person)
                sums = [total + value for total, value in zip(sums, values[leaf], strict=True)]
            rows.append(
                [
                    sum(sign * total for sign, total in zip(signs, sums, strict=True))
                    for signs in self.directions
                ]
            )
        return ExactScores(Dyadic(np.array(rows, dtype=object), exponent, self.denominator))

    def _leaf(self, node: int, person: list[float]) -> int:
        """Follow one person from a root to a leaf."""
        while self.nodes["kind"][node] != LEAF:
            side = "left" if self.goes_left(node, person) else "right"
            child = int(self.nodes[side][node])
            if child <= node:
                raise CertificateError(
                    f"invalid tree in what is re-checked: got node {child} below node {node}; "
                    "expected children after their parents"
                )
            node = child
        return node

    def goes_left(self, node: int, person: list[float]) -> bool:
        """Return where a person goes at a test."""
        source = int(self.nodes["source"][node])
        if self.nodes["kind"][node] == CUT:
            flag = int(self.nodes["flag"][node])
            if flag >= 0 and person[flag] == 1:
                return bool(self.nodes["missing_left"][node])
            return person[source] <= self.nodes["cut"][node]
        index = int(self.nodes["start"][node]) + _value_index(self.domains[source], person)
        return bool(self.nodes["members"][index])


def _value_index(domain: dict[str, Array], person: list[float]) -> int:
    """Return the index of a person's value in a domain; raise if the value is not listed."""
    if "width" in domain:
        first, width = int(domain["first"]), int(domain["width"])
        marked = [n for n in range(width) if person[first + n] == 1]
        if len(marked) != 1:
            raise CertificateError(
                f"invalid category in what is re-checked: got {len(marked)} values from column "
                f"{first} on; expected one"
            )
        return marked[0]
    numbers, flag = domain["numbers"].tolist(), int(domain["flag"])
    if flag >= 0 and person[flag] == 1:
        return len(numbers)
    number = person[int(domain["column"])]
    if number not in numbers:
        raise CertificateError(
            f"unknown value in column {int(domain['column'])}: got {number!r}; expected a value "
            "that the ensemble lists"
        )
    return numbers.index(number)
