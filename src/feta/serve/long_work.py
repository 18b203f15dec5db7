"""What is done for long requests: batches, and questions about all counterparts of a person.

The helper process does this work; nothing here knows of processes or HTTP.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from typing import Any

import orjson

from feta.serve.arrow import records_of_arrow
from feta.serve.audit_log import log_entry
from feta.serve.body import parse_json
from feta.serve.decisions import DecidedPeople, check_number, decide_records
from feta.serve.explaining import explain_decision
from feta.serve.inference import infer
from feta.serve.limits import LIMITS
from feta.serve.refusal import Refusal
from feta.serve.served import Served
from feta.serve.whatif import what_if

# People decided between two looks at the connection: whoever has gone needs no answer.
CHUNK = 1000


class Kind(StrEnum):
    """What a long request asks for, and in which format."""

    DECIDE = "decide"
    DECIDE_ARROW = "decide arrow"
    INFER = "infer"
    WHAT_IF = "what-if"
    EXPLAIN = "explain"


@dataclass(frozen=True, slots=True)
class Question:
    """A long request: its body is not parsed yet."""

    kind: Kind
    body: bytes
    client: str
    log_key: bytes | None  # of the log of decisions, if there is one


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that is logged and counted before it is sent."""

    content: bytes
    entry: bytes | None = None
    counts: dict[str, int] = field(default_factory=dict)

    @classmethod
    def about(
        cls, decided: DecidedPeople, content: object, client: str, log_key: bytes | None
    ) -> "Answer":
        """Return an answer about people who were decided."""
        entry = None if log_key is None else log_entry(decided, client=client, key=log_key)
        return cls(orjson.dumps(content), entry, decided.counts())


def answer(served: Served, question: Question, gone: Callable[[], bool]) -> Answer:
    """Answer a long request; raise `ConnectionResetError` once its client has gone."""
    if question.kind is Kind.WHAT_IF:
        return Answer(orjson.dumps(what_if(served, parse_json(question.body))))
    if question.kind is Kind.EXPLAIN:
        return Answer(orjson.dumps(explain_decision(served, parse_json(question.body))))
    if question.kind is Kind.INFER:
        content, decided = infer(served, parse_json(question.body))
    else:
        body = _parse(served, question)
        records = [body] if isinstance(body, dict) else body
        check_number(len(records))
        decided = _in_chunks(served, records, gone)
        content = decided.many(len(records)) if records is body else decided.single()
    return Answer.about(decided, content, question.client, question.log_key)


def _parse(served: Served, question: Question) -> dict[str, Any] | list[Any]:
    if question.kind is Kind.DECIDE_ARROW:
        return list(records_of_arrow(question.body, served.known, LIMITS))
    body = parse_json(question.body)
    if not isinstance(body, dict | list):
        raise Refusal(
            HTTPStatus.BAD_REQUEST,
            f"invalid body: got {type(body).__name__}; expected a record (an object of columns) "
            "or a list of records",
        )
    return body


def _in_chunks(
    served: Served, records: Sequence[object], gone: Callable[[], bool]
) -> DecidedPeople:
    parts: list[DecidedPeople] = []
    for start in range(0, len(records), CHUNK):
        if gone():
            raise ConnectionResetError
        part = decide_records(served, records[start : start + CHUNK])
        parts.append(part.moved(start))
    return DecidedPeople.joined(parts)
