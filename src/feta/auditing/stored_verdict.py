"""Verdicts as JSON values, with their evidence: the form in which a journal stores them."""

from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any, assert_never

import numpy as np

from feta.arrays import Flags, Vector
from feta.model import Model
from feta.query import WorstAt
from feta.verdict.certificate import BoundsProof, Certificate, Cut, LatticeProof, Proof
from feta.verdict.counterexample import Counterexample
from feta.verdict.verdict import Fair, Reason, Unfair, Unknown, Verdict

Json = dict[str, Any]
Ends = tuple[Vector, Vector]


def stored_verdict(verdict: Verdict, moving: Flags) -> Json:
    """Return a verdict as JSON values; of a pair, only the columns that move are stored."""
    match verdict:
        case Fair(certificate=certificate, runtime=runtime):
            proof = _stored_proof(certificate.proof)
            return {"fair": proof, "engine": certificate.engine, "runtime": runtime}
        case Unfair(counterexample=pair, optimal=optimal):
            return {"unfair": _stored_pair(pair, moving), "optimal": optimal}
        case Unknown(reason=reason, best=best, solver=solver, detail=detail):
            pair_or_none = None if best is None else _stored_pair(best, moving)
            content = {"undecided": str(reason), "solver": solver, "best": pair_or_none}
            return content | ({"detail": detail} if detail else {})
        case _:
            assert_never(verdict)


def read_verdict(content: Json, query: WorstAt) -> Verdict | None:
    """Return the verdict about a query; None if its evidence does not hold.

    Values of wrong types raise `ValueError`, `TypeError`, `KeyError` or `DomainError`.
    """
    (pair,) = replayed([query], [stored_ends(content, query)])
    return verdict_with(content, query, pair)


def stored_ends(content: Json, query: WorstAt) -> Ends | None:
    """Return the two people of a stored pair; None if the verdict has no pair."""
    code = content.get("unfair", content.get("best"))
    if code is None:
        return None
    first, second = (_with_moving(query, end) for end in code)
    return first, second


def replayed(
    queries: Sequence[WorstAt], ends: Sequence[Ends | None]
) -> list[Counterexample | None]:
    """Replay the stored pairs of queries about one model; None where there is none, or none holds.

    Pairs of decisions are replayed together, except those of a function of the user.
    """
    pairs: list[Counterexample | None] = [None] * len(queries)
    model = queries[0].model
    decides = model.rule.tolerance is None
    rows = [
        row
        for row, two in enumerate(ends)
        # A pair of decisions begins with the person.
        if two is not None and (not decides or np.array_equal(two[0], queries[row].person))
    ]
    chosen = [two for row in rows if (two := ends[row]) is not None]
    if decides and model.scorer.provenance != "counted" and len(rows) > 1:
        with suppress(ValueError):  # somebody is outside the space: replay one by one
            firsts, seconds = (np.stack(side) for side in zip(*chosen, strict=True))
            found = Counterexample.witnesses(model, firsts, seconds)
            return _placed(pairs, rows, found)
    return _placed(pairs, rows, [_witness(model, *two) for two in chosen])


def _witness(model: Model, first: Vector, second: Vector) -> Counterexample | None:
    try:
        return Counterexample.witness(model, first, second)
    except ValueError:
        return None


def _placed(
    pairs: list[Counterexample | None], rows: list[int], found: list[Counterexample | None]
) -> list[Counterexample | None]:
    for row, pair in zip(rows, found, strict=True):
        pairs[row] = pair
    return pairs


def verdict_with(content: Json, query: WorstAt, pair: Counterexample | None) -> Verdict | None:
    """Return the verdict about a query with its pair, which was replayed; None if it has none."""
    if content.keys() == {"fair", "engine", "runtime"}:
        return _read_fair(content, query)
    if content.keys() == {"unfair", "optimal"}:
        return None if pair is None else Unfair(pair, optimal=content["optimal"] is True)
    reason, solver = Reason(content["undecided"]), content["solver"]
    best, detail = content["best"], content.get("detail", "")
    texts = isinstance(solver, str) and isinstance(detail, str)
    if not texts or (pair is None) != (best is None):
        return None
    return Unknown(reason, pair, solver=solver, detail=detail)


def _stored_proof(proof: Proof) -> int | Json:
    if isinstance(proof, LatticeProof):
        return proof.counterparts
    return {"cuts": proof.cuts, "center": None if proof.center is None else str(proof.center)}


def _read_fair(content: Json, query: WorstAt) -> Fair | None:
    stored, engine, runtime = content["fair"], content["engine"], content["runtime"]
    if not isinstance(engine, str) or runtime not in ("safe", "sensitive"):
        return None
    proof: Proof | None
    if isinstance(stored, int):
        covers = stored == query.model.relation.count(query.person)
        proof = LatticeProof(stored) if covers else None
    else:
        proof = _read_cuts(stored, query)
    return None if proof is None else Fair(Certificate(query.digest, engine, proof), runtime)


def _read_cuts(stored: Json, query: WorstAt) -> BoundsProof | None:
    """Return a proof by bounds if its cuts are a complete tree, and its center fits the rule."""
    cuts: list[Cut | None] = [
        None if cut is None else (int(cut[0]), float(cut[1])) for cut in stored["cuts"]
    ]
    center = None if stored["center"] is None else Fraction(stored["center"])
    n_open = 1
    for index, cut in enumerate(cuts, start=1):
        n_open += -1 if cut is None else 1
        if (n_open == 0) != (index == len(cuts)):
            return None
    has_center = query.model.rule.tolerance is not None
    return BoundsProof(tuple(cuts), center) if cuts and has_center == (center is not None) else None


def _stored_pair(pair: Counterexample, moving: Flags) -> list[str]:
    return [end[moving].tobytes().hex() for end in (pair.person, pair.counterpart)]


def _with_moving(query: WorstAt, code: str) -> Vector:
    """Return the person with other values in the columns that move."""
    person = np.array(query.person)
    person[query.model.relation.moving] = np.frombuffer(bytes.fromhex(code))
    return person
