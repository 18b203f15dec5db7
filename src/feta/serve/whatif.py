"""What the model decides about each counterpart of one person, and how they vote together."""

from http import HTTPStatus
from typing import Any

import numpy as np

from feta.api import worst
from feta.arrays import Answers, Vector
from feta.engine.protocol import Budget
from feta.errors import DomainError, FetaError
from feta.model import Model
from feta.rule.comparator import UNDECIDED
from feta.serve.encoding import RefusedRow, encode_request, refused_row
from feta.serve.limits import LIMITS
from feta.serve.refusal import Refusal
from feta.serve.served import Served
from feta.verdict.counterexample import Counterexample
from feta.verdict.verdict import Fair, Unfair
from feta.wider_limits import model_for

# Digits of decisions in the answer; "?" is undecided.
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"

# A page does not wait longer for the farthest pair.
BUDGET = Budget(seconds=5.0)


def what_if(served: Served, record: object) -> dict[str, Any]:
    """Return the decisions of all counterparts of a person, who has sensitive values."""
    model = served.model
    _check_size(model)
    person = _encoded(served, record)
    over = model_for(model, person)
    decisions = _decisions(over, person)
    own = over.relation.axes
    place = [int(axis.indices(person[None, :])[0]) for axis in own]
    fair = served.predictor.decide(person[None, :]).tolist()[0]
    return {
        "axes": [_axis(served, index) for index in range(len(own))],
        "own": place,
        "decisions": "".join(DIGITS[d] if d != UNDECIDED else "?" for d in decisions.tolist()),
        "outcomes": list(model.outcomes),
        "counts": {
            name: int((decisions == index).sum()) for index, name in enumerate(model.outcomes)
        },
        "all": len(decisions),
        "own_decision": model.describe(model.decide(person[None, :]).tolist()[0])
        if over is model
        else model.describe(over.decide(person[None, :]).tolist()[0]),
        "decision": served.describe(fair),
        **_verdict(over, person),
        "vote": served.predictor.vote,
        "weighted": served.predictor.weights is not None,
        "provenance": model.scorer.provenance,
        "fingerprint": model.fingerprint,
        "model": served.digest,
    }


def _check_size(model: Model) -> None:
    if model.rule.tolerance is not None or not model.relation.finite or not model.relation.complete:
        raise Refusal(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            "no what-if for this model: got a regression, or counterparts that cannot be listed; "
            "expected decisions and finitely many sensitive values; use feta audit",
        )
    if model.relation.size > LIMITS.counterparts or len(model.outcomes) > len(DIGITS):
        raise Refusal(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            f"too many counterparts for a what-if: got {model.relation.size:,}; expected at most "
            f"{LIMITS.counterparts:,}; use feta audit",
        )


def _encoded(served: Served, record: object) -> Vector:
    """Encode one record with its sensitive values."""
    refused = encode_request(served, [record]).refused
    if refused:
        raise _unprocessable(refused[0])
    space = served.model.space
    assert isinstance(record, dict)  # encode_request checks
    for attribute in space.sensitive:
        if attribute.name not in record:
            why = f"missing column: expected {attribute.name!r}, to place the person"
            raise _unprocessable(RefusedRow(0, attribute.name, why))
    try:
        person: Vector = space.encode(record, limits="open")[0]
    except DomainError as error:
        raise _unprocessable(refused_row(0, error)) from None
    return person


def _unprocessable(refused: RefusedRow) -> Refusal:
    return Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, refused.why, column=refused.column)


def _decisions(model: Model, person: Vector) -> Answers:
    parts = [
        model.resolve(model.points(block), model.rule).decisions
        for block in model.relation.counterparts(person)
    ]
    return np.concatenate(parts)


def _axis(served: Served, index: int) -> dict[str, Any]:
    """Return the values of a sensitive attribute, in the order of the decisions."""
    axis = served.model.relation.axes[index]
    codes = axis.codes(np.arange(len(axis)))[:, : axis.attribute.width]
    return {"name": axis.attribute.name, "values": [axis.attribute.decode(code) for code in codes]}


def _verdict(model: Model, person: Vector) -> dict[str, Any]:
    """Return the farthest counterexample, or that none exists."""
    try:
        verdict = worst(model, person, budget=BUDGET)
    except FetaError as error:
        return {"fair": None, "pair": None, "why": str(error)}
    match verdict:
        case Fair():
            return {"fair": True, "pair": None, "runtime": verdict.runtime}
        case Unfair(counterexample=pair):
            return {"fair": False, "pair": _pair(model, pair), "runtime": verdict.runtime}
        case _:
            best = None if verdict.best is None else _pair(model, verdict.best)
            return {"fair": None if best is None else False, "pair": best, "why": verdict.reason}


def _pair(model: Model, pair: Counterexample) -> dict[str, Any]:
    first, second = (model.space.decode(row) for row in (pair.person, pair.counterpart))
    return {
        "people": [first, second],
        "decisions": [model.describe(decision) for decision in pair.decisions],
        "scores": pair.scores.tolist(),
        "changed": [
            {"column": name, "values": [first[name], second[name]]}
            for name in first
            if first[name] != second[name]
        ],
        "gap": pair.gap,
    }
