"""The smallest changes that would make the fair decision about one person favorable."""

from http import HTTPStatus
from typing import Any

from feta.errors import DomainError, SchemaError
from feta.io.sanitize import shortened
from feta.reasons.explain import explain
from feta.reasons.words import sentences
from feta.serve.encoding import MAX_WORDS, encode_request
from feta.serve.refusal import Refusal
from feta.serve.served import Served

# Decisions and time of one search; a page does not wait longer.
MAX_DECISIONS, SECONDS = 50_000, 5.0

KEYS = {"record", "change", "favorable"}


def explain_decision(served: Served, body: object) -> dict[str, Any]:
    """Return reasons for the fair decision about a record, and whether they are minimal."""
    record, change, favorable = _read(body)
    encoded = encode_request(served, [record])
    if encoded.refused:
        first = encoded.refused[0]
        raise Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, first.why, column=first.column)
    try:
        explanation = explain(
            served.predictor,
            encoded.people[0],
            change,
            favorable=favorable,
            max_decisions=MAX_DECISIONS,
            seconds=SECONDS,
        )
    except (SchemaError, DomainError) as error:
        why = shortened(str(error), MAX_WORDS)
        raise Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, why) from None
    return {
        **explanation.content,
        "sentences": sentences(explanation),
        "model": served.digest,
    }


def _read(body: object) -> tuple[object, list[str], str | None]:
    """Return the record, what may change, and the wanted decision."""
    if not isinstance(body, dict) or not body.keys() <= KEYS or "record" not in body:
        raise _invalid("the body", "an object with `record`, `change` and perhaps `favorable`")
    change, favorable = body.get("change"), body.get("favorable")
    if not isinstance(change, list) or not all(isinstance(one, str) for one in change):
        raise _invalid("`change`", 'a list of texts such as "duration:down:6..48:step=6"')
    if not (favorable is None or isinstance(favorable, str)):
        raise _invalid("`favorable`", "the name of a decision")
    return body["record"], change, favorable


def _invalid(what: str, expected: str) -> Refusal:
    return Refusal(
        HTTPStatus.BAD_REQUEST, f"invalid request: {what} has another form; expected {expected}"
    )
