"""The OpenAPI document, written from the schema of the served model."""

from importlib.metadata import version
from typing import Any

from feta.serve.limits import LIMITS
from feta.serve.served import Served
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Levels

ERROR = {"$ref": "#/components/schemas/Error"}


def openapi_of(served: Served) -> dict[str, Any]:
    """Return the document for the model that is served now."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"Fair decisions of {served.name}",
            "version": served.digest[:12],
            "description": f"feta {version('feta-fair')}; every answer names its model's sha256.",
        },
        "paths": _paths(),
        "components": {
            "schemas": _schemas(served),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            },
        },
    }


def _schemas(served: Served) -> dict[str, Any]:
    record = _record(served, required=served.required)
    sensitive = [attribute.name for attribute in served.model.space.sensitive]
    outcome: dict[str, Any] = {"enum": list(served.model.outcomes)}
    if served.model.rule.tolerance is not None:
        outcome = {"type": "number"}
    digest = {"type": "string", "description": "sha256 of the model file"}
    refused = {
        "type": "object",
        "properties": {
            "row": {"type": "integer"},
            "column": {"type": ["string", "null"]},
            "why": {"type": "string"},
        },
    }
    return {
        "Person": record,
        "WholePerson": _record(served, required=(*served.required, *sensitive)),
        "People": {"type": "array", "items": record, "minItems": 1, "maxItems": LIMITS.people},
        "Decision": {"type": "object", "properties": {"decision": outcome, "model": digest}},
        "Decisions": {
            "type": "object",
            "properties": {
                "decisions": {"type": "array", "items": {"anyOf": [outcome, {"type": "null"}]}},
                "refused": {"type": "array", "items": refused},
                "model": digest,
            },
        },
        "Error": {"type": "object", "properties": {"error": {"type": "string"}}},
    }


def _record(served: Served, *, required: tuple[str, ...]) -> dict[str, Any]:
    attributes = served.model.space.attributes
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": {attribute.name: _property(served, attribute) for attribute in attributes},
    }


def _property(served: Served, attribute: Attribute) -> dict[str, Any]:
    sensitive = served.model.space.is_sensitive(attribute)
    note = "; sensitive: never read by a decision" if sensitive else ""
    if isinstance(attribute, Derived):
        return {"description": f"computed from {attribute.source!r}{note}"}
    content: dict[str, Any] = {"description": attribute.domain() + note}
    match attribute:
        case Categorical(other=True):
            content["type"] = ["string", "null"] if attribute.missing else "string"
            return content
        case Categorical():
            content["enum"] = [*attribute.values, *[None] * attribute.missing]
            return content
        case Integer():
            kind = "integer"
        case _:
            kind = "number"
    content["type"] = [kind, "null"] if attribute.missing else kind
    if attribute.strict and not isinstance(attribute, Levels):
        content |= {"minimum": attribute.low, "maximum": attribute.high}
    return content


def _paths() -> dict[str, Any]:
    person = {"$ref": "#/components/schemas/Person"}
    people = {"$ref": "#/components/schemas/People"}
    whole = {"$ref": "#/components/schemas/WholePerson"}
    one, many = ({"$ref": f"#/components/schemas/{name}"} for name in ("Decision", "Decisions"))
    return {
        "/v1/decide": {
            "post": _post("Decide one person or many", {"anyOf": [person, people]}, [one, many])
        },
        "/v1/whatif": {
            "post": _post("Decide all counterparts of one person", whole, [{"type": "object"}])
        },
        **{
            path: {"get": {"summary": summary, "responses": {"200": {"description": "OK"}}}}
            for path, summary in (
                ("/v1/schema", "The columns of a record"),
                ("/v1/card", "What the model is and how its counterparts vote"),
                ("/metrics", "Metrics in the format of Prometheus"),
                ("/health/live", "Whether the process answers"),
                ("/health/ready", "Whether a model is loaded"),
            )
        },
    }


def _post(summary: str, body: dict[str, Any], answers: list[dict[str, Any]]) -> dict[str, Any]:
    refusals = {
        "400": "The body is not valid JSON, or has the wrong shape",
        "401": "The API key is missing or unknown",
        "413": "The body or the list is too long",
        "415": "The content type is not supported",
        "422": "A value is invalid; `column` names it",
        "503": "The service is busy; retry after the seconds in Retry-After",
    }
    answer = answers[0] if len(answers) == 1 else {"anyOf": answers}
    responses: dict[str, Any] = {
        status: {"description": text, "content": {"application/json": {"schema": ERROR}}}
        for status, text in refusals.items()
    }
    responses["200"] = {
        "description": "OK",
        "content": {"application/json": {"schema": answer}},
    }
    return {
        "summary": summary,
        "security": [{}, {"bearer": []}, {"key": []}],
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": responses,
    }
