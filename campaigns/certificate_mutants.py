"""Mutants of certificates: single bits, and lies under a valid seal."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from campaigns.certificate_truth import Claim, Truth
from feta.io.canonical_json import canonical
from feta.io.certificate_file import CERTIFICATE, MODEL, SCHEMA, CertificateWriter

Generator = np.random.Generator


def flip_bit(rng: Generator, folder: Path) -> None:
    """Flip one bit in one of the three files."""
    path = folder / (CERTIFICATE, SCHEMA, MODEL)[rng.integers(3)]
    content = bytearray(path.read_bytes())
    content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    path.write_bytes(content)


@dataclass
class Sealed:
    """A certificate that is changed and sealed again."""

    folder: Path
    truth: Truth | None  # None: nobody knows, so nothing may be accepted
    header: dict[str, Any]
    claims: list[Claim]
    kind: str = ""
    known: dict[int, bool] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path, truth: Truth) -> "Sealed":
        """Read a certificate."""
        header, *claims, _ = (folder / CERTIFICATE).read_bytes().splitlines()
        return cls(folder, truth, json.loads(header), [json.loads(claim) for claim in claims])

    @property
    def rows(self) -> list[int]:
        """The rows of the claims."""
        return [claim["row"] for claim in self.claims]

    def claim(self, row: int) -> Claim:
        """Return the claim about a row."""
        return next(claim for claim in self.claims if claim["row"] == row)

    def holds(self, row: int) -> bool:
        """Return whether a claim is true."""
        if row not in self.known:
            self.known[row] = self.truth is not None and self.truth.holds(self.claim(row))
        return self.known[row]

    def write(self, kind: str) -> None:
        """Write and seal it."""
        self.kind = kind
        header = {key: value for key, value in self.header.items() if key not in _FIXED}
        header["date"] = "2026-01-31"
        header["model_sha256"] = _digest(self.folder / MODEL)
        header["schema_sha256"] = _digest(self.folder / SCHEMA)
        writer = CertificateWriter(self.folder / CERTIFICATE, header)
        for claim in self.claims:
            writer.add(claim)
        writer.finish(complete=True)

    def some(self, rng: Generator, verdict: str = "") -> Claim:
        """Return one of the claims, with this verdict if there is one."""
        claims = [claim for claim in self.claims if claim["verdict"] == verdict] or self.claims
        return claims[rng.integers(len(claims))]

    def fix_salts(self, rng: Generator) -> None:
        """Replace random salts, so that the campaign is deterministic."""
        for claim in self.claims:
            claim["salt"] = rng.bytes(16).hex()

    def grow_trees(self, rng: Generator) -> None:
        """Replace proofs by random trees."""
        assert self.truth is not None
        for claim in self.claims:
            regression = self.truth.rule.tolerance is not None
            if claim["verdict"] == "fair" and "counterparts" in claim["proof"] and not regression:
                sizes = self.truth.sizes
                claim["proof"] = {"tree": _tree(rng, [(0, size - 1) for size in sizes])}


_FIXED = ("format", "version")


def _tree(rng: Generator, box: list[tuple[int, int]]) -> list[Any]:
    cuttable = [axis for axis, (low, high) in enumerate(box) if low < high]
    if not cuttable or rng.random() < 0.4:
        return [0]
    axis = cuttable[rng.integers(len(cuttable))]
    low, high = box[axis]
    at = int(rng.integers(low, high))
    halves = [[*box[:axis], ends, *box[axis + 1 :]] for ends in ((low, at), (at + 1, high))]
    return [[axis, at], *_tree(rng, halves[0]), *_tree(rng, halves[1])]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def flip_decision(rng: Generator, sealed: Sealed, other: Path) -> None:
    """State another decision."""
    del other
    claim = sealed.some(rng)
    claim["decision"] = _another(rng, claim["decision"])


def flip_fair_decision(rng: Generator, sealed: Sealed, other: Path) -> None:
    """State another fair decision."""
    del other
    claim = sealed.some(rng)
    claim["fair_decision"] = _another(rng, claim["fair_decision"])


def _another(rng: Generator, stated: Any) -> Any:
    if isinstance(stated, str):
        return _changed(rng, stated)
    return int(rng.integers(0, 3)) if stated is None else 1 - stated


def _changed(rng: Generator, text: str) -> str:
    if text == "0":
        return "1p-1074"
    mantissa, exponent = text.split("p")
    number = int(mantissa, 16)
    return f"{-number:x}p{exponent}" if rng.random() < 0.5 else f"{number + 2 or 1:x}p{exponent}"


def wrong_count(rng: Generator, sealed: Sealed, other: Path) -> None:
    """State another number of counterparts."""
    del other
    claim = sealed.some(rng, "fair")
    count = claim.get("proof", {}).get("counterparts", int(rng.integers(1, 9)))
    claim["proof"] = {"counterparts": count + int(rng.choice([-1, 1]))}


def call_fair(rng: Generator, sealed: Sealed, other: Path) -> None:
    """Call an unfair person fair."""
    del other
    assert sealed.truth is not None
    claim = sealed.some(rng, "unfair")
    claim.pop("pair", None)
    sizes = sealed.truth.sizes
    claim |= {"verdict": "fair", "proof": {"counterparts": int(np.prod(sizes))}}
    if rng.random() < 0.5:
        claim["proof"] = {"tree": _tree(rng, [(0, size - 1) for size in sizes])}


def call_unfair(rng: Generator, sealed: Sealed, other: Path) -> None:
    """Call a fair person unfair, with two of the person's own sensitive values."""
    del other
    assert sealed.truth is not None
    claim = sealed.some(rng, "fair")
    claim.pop("proof", None)
    raw = [a for a in sealed.truth.space.attributes if hasattr(a, "sensitive")]
    own = [cell for a, cell in zip(raw, claim["person"], strict=True) if a.sensitive]
    moved = list(own)
    index = rng.integers(len(own))
    moved[index] = _moved(rng, own[index])
    width = max(1, sealed.truth.rule.outputs)
    claim |= {"verdict": "unfair", "pair": {"people": [own, moved], "scores": [["0"] * width] * 2}}


def _moved(rng: Generator, cell: Any) -> Any:
    if cell is None:
        return "0"
    if isinstance(cell, int):
        return max(0, cell + int(rng.choice([-1, 1])))
    return None if rng.random() < 0.2 else _changed(rng, cell)


def wrong_pair(rng: Generator, sealed: Sealed, other: Path) -> None:
    """Move one of the two people of a pair, or swap them."""
    del other
    claim = sealed.some(rng, "unfair")
    if "pair" not in claim:
        return call_unfair(rng, sealed, sealed.folder)
    people = claim["pair"]["people"]
    end = people[rng.integers(2)]
    if rng.random() < 0.3:
        people.reverse()
    else:
        index = rng.integers(len(end))
        end[index] = _moved(rng, end[index])
    return None


def wrong_score(rng: Generator, sealed: Sealed, other: Path) -> None:
    """State another score."""
    del other
    claim = sealed.some(rng, "unfair")
    if "pair" not in claim:
        return call_unfair(rng, sealed, sealed.folder)
    scores = claim["pair"]["scores"][rng.integers(2)]
    index = rng.integers(len(scores))
    scores[index] = _changed(rng, scores[index])
    return None


def swap_people(rng: Generator, sealed: Sealed, other: Path) -> None:
    """Swap the people of two claims."""
    del other
    first, second = sealed.some(rng), sealed.some(rng)
    first["person"], second["person"] = second["person"], first["person"]


def move_person(rng: Generator, sealed: Sealed, other: Path) -> None:
    """Change a cell of the person."""
    del other
    person = sealed.some(rng)["person"]
    index = rng.integers(len(person))
    person[index] = _moved(rng, person[index])


def damage_tree(rng: Generator, sealed: Sealed, other: Path) -> None:
    """Remove, repeat or move a node of a tree."""
    del other
    claim = sealed.some(rng, "fair")
    tree = claim.get("proof", {}).get("tree")
    if tree is None:
        return call_fair(rng, sealed, sealed.folder)
    index = int(rng.integers(len(tree)))
    kind = rng.integers(3)
    if kind == 0:
        del tree[index]
    elif kind == 1:
        tree.insert(index, tree[index])
    elif isinstance(tree[index], list):
        tree[index][int(rng.integers(2))] += int(rng.choice([-1, 1]))
    else:
        tree[index] = [0, 0]
    return None


def other_claims(rng: Generator, sealed: Sealed, other: Path) -> None:
    """Take the claims of another model."""
    del rng
    assert sealed.truth is not None
    sealed.claims = Sealed.read(other, sealed.truth).claims


def other_model(rng: Generator, sealed: Sealed, other: Path) -> None:
    """Take the model of another certificate."""
    del rng
    same = (sealed.folder / MODEL).read_bytes() == (other / MODEL).read_bytes()
    (sealed.folder / MODEL).write_bytes((other / MODEL).read_bytes())
    sealed.truth = sealed.truth if same else None


def other_schema(rng: Generator, sealed: Sealed, other: Path) -> None:
    """Change the schema: a limit, a name, or whether a column is sensitive."""
    del other
    schema = json.loads((sealed.folder / SCHEMA).read_bytes())
    column = schema["columns"][rng.integers(len(schema["columns"]))]
    column["sensitive"] = not column.get("sensitive", False)
    (sealed.folder / SCHEMA).write_bytes(canonical(schema))
    sealed.truth = None


def flip_text(rng: Generator, sealed: Sealed, other: Path) -> None:
    """Change one character of a claim, where the result is still JSON."""
    del other
    index = int(rng.integers(len(sealed.claims)))
    for _ in range(100):
        text = bytearray(canonical(sealed.claims[index]))
        text[rng.integers(len(text))] ^= 1 << int(rng.integers(7))
        try:
            claim = json.loads(text.decode("ascii"))
        except (ValueError, RecursionError):
            continue
        if isinstance(claim, dict) and isinstance(claim.get("row"), int) and "verdict" in claim:
            sealed.claims[index] = claim
            return


MUTATIONS: dict[str, Callable[[Generator, Sealed, Path], None]] = {
    "decision": flip_decision,
    "fair decision": flip_fair_decision,
    "count": wrong_count,
    "called fair": call_fair,
    "called unfair": call_unfair,
    "pair": wrong_pair,
    "score": wrong_score,
    "people swapped": swap_people,
    "person": move_person,
    "tree": damage_tree,
    "claims of another model": other_claims,
    "another model": other_model,
    "another schema": other_schema,
    "a character": flip_text,
}
