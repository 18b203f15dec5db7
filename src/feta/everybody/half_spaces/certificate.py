"""Certificates about everybody: claims, digests, and the tree of cuts.

A certificate is one line of JSON and the tree, packed with LZMA. The tree is depth first, one byte
per node: the axis that is cut in the middle, or 128 plus the code of a leaf. The claims are lower
than what was proved, by ROOM, so that the arithmetic of another program proves them, too.
"""

import hashlib
import json
import lzma
from fractions import Fraction
from itertools import groupby

import numpy as np

from feta.errors import SchemaError
from feta.everybody.half_spaces.prover import HalfSpaces
from feta.everybody.population import Independent
from feta.io.model_file import model_bytes
from feta.space.attribute import Derived, Levels, Real

FORMAT, VERSION = "feta-everybody", 1

# The byte of a leaf, before its code is added.
LEAF = 128

# Claims leave out this part of what is not proved to be fair, and of what is proved to be unfair.
ROOM = Fraction(1, 2**12)


def certificate(proof: HalfSpaces, population: Independent) -> bytes:
    """Return the certificate of what a proof has shown so far."""
    if len(proof.parts) > 1 or any(isinstance(a, Derived) for a in proof.model.space.attributes):
        raise SchemaError(
            "no certificate: got derived columns, or real-valued columns that may be missing; "
            "expected other columns, because the checker knows no more; leave out --certify"
        )
    people = _described(proof, population)
    text = json.dumps(people, sort_keys=True)
    fair = max(Fraction(0), 1 - (1 - proof.fair) * (1 + ROOM))
    tree = proof.searches[0].tree()
    axes, codes = tree.axes, tree.codes
    order = np.fromiter(tree.depth_first(), dtype=np.int64, count=len(axes))
    nodes = np.where(axes[order] >= 0, axes[order], LEAF + codes[order]).astype(np.uint8).tobytes()
    header = {
        "format": FORMAT,
        "version": VERSION,
        "model": hashlib.sha256(model_bytes(proof.model)).hexdigest(),
        "schema": proof.model.space.fingerprint,
        "population": people,
        "digest": hashlib.sha256(text.encode()).hexdigest(),
        "tree": hashlib.sha256(nodes).hexdigest(),
        "claims": {"fair": _stated(fair), "unfair": _stated(proof.unfair * (1 - ROOM))},
    }
    content = json.dumps(header, sort_keys=True).encode() + b"\n" + nodes
    return lzma.compress(content, preset=9)


def _stated(share: Fraction) -> str:
    """Return a share as a short fraction that is not above it."""
    return str(Fraction(share.numerator * 2**60 // share.denominator, 2**60))


def _described(proof: HalfSpaces, population: Independent) -> dict[str, object]:
    """Return the population: its kind, its condition, and the weights that differ from 1."""
    columns: dict[str, object] = {}
    part, problem = proof.parts[0], proof.problems[0]
    counted_equally = population.kind == "uniform" and not population.where.text
    for index, axis in zip(part.shared, problem.axes, strict=True):
        name = part.axes[index].attribute.name
        attribute = part.axes[index].attribute
        if counted_equally:
            continue
        if axis.ends is None:
            columns[name] = {"span": [axis.low, axis.high]}
            continue
        weights = np.diff(axis.ends).tolist()
        stated: dict[str, object] = {"runs": [[w, len(list(run))] for w, run in groupby(weights)]}
        real = isinstance(proof.model.space.attribute(name), Real)
        if real and isinstance(attribute, Levels):
            stated["numbers"] = list(attribute.numbers)
        columns[name] = stated
    return {"kind": population.kind, "condition": population.where.text, "columns": columns}
