"""Verdicts as JSON values, with their evidence: the form in which a journal stores them."""

from fractions import Fraction
from typing import Any, assert_never

import numpy as np

from feta.arrays import Flags, Vector
from feta.query import WorstAt
from feta.verdict.certificate import BoundsProof, Certificate, Cut, LatticeProof, Proof
from feta.verdict.counterexample import Counterexample
from feta.verdict.verdict import Fair, Reason, Unfair, Unknown, Verdict

Json = dict[str, Any]


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
    if content.keys() == {"fair", "engine", "runtime"}:
        return _read_fair(content, query)
    if content.keys() == {"unfair", "optimal"}:
        pair = _read_pair(content["unfair"], query)
        return None if pair is None else Unfair(pair, optimal=content["optimal"] is True)
    reason, solver = Reason(content["undecided"]), content["solver"]
    best, detail = content["best"], content.get("detail", "")
    pair = None if best is None else _read_pair(best, query)
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


def _read_pair(ends: list[str], query: WorstAt) -> Counterexample | None:
    first, second = (_with_moving(query, code) for code in ends)
    if query.model.rule.tolerance is None and not np.array_equal(first, query.person):
        return None  # a pair of decisions begins with the person
    return Counterexample.witness(query.model, first, second)


def _with_moving(query: WorstAt, code: str) -> Vector:
    """Return the person with other values in the columns that move."""
    person = np.array(query.person)
    person[query.model.relation.moving] = np.frombuffer(bytes.fromhex(code))
    return person
