"""The OpenAPI document, written from the schema of the served model."""

from importlib.metadata import version
from typing import Any

from feta.serve.limits import LIMITS
from feta.serve.served import Served
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Levels

ERROR = {"$ref": "#/components/schemas/Error"}
DIGEST = {"type": "string", "description": "sha256 of the model file"}
SECURITY: list[dict[str, list[str]]] = [{}, {"bearer": []}, {"key": []}]
VERSION = {"name": "version", "in": "path", "required": True, "schema": DIGEST}

GETS = (
    ("/v1/schema", "The columns of a record"),
    ("/v1/card", "What the model is and how its counterparts vote"),
    ("/metrics", "Metrics in the format of Prometheus"),
    ("/health/live", "Whether the process answers"),
    ("/health/ready", "Whether a model is loaded"),
    ("/v2/health/live", "Whether the process answers"),
    ("/v2/health/ready", "Whether a model is loaded"),
)
# Those that need no API key.
OPEN = {path for path, _ in GETS if "health" in path}

REFUSALS = {
    "400": "The body is not valid JSON, or has the wrong shape",
    "401": "The API key is missing or unknown",
    "408": "The body is too slow",
    "413": "The body or the list is too long",
    "415": "The content type is not supported",
    "422": "A value is invalid; `column` names it",
    "503": "The service is busy, cannot write its log, or restarts its helper; see Retry-After",
}


# The body and the answer of /v1/explain.
QUESTION: dict[str, Any] = {
    "type": "object",
    "required": ["record", "change"],
    "additionalProperties": False,
    "properties": {
        "record": {"$ref": "#/components/schemas/Person"},
        "change": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "favorable": {"type": ["string", "null"]},
    },
}
EXPLANATION: dict[str, Any] = {
    "type": "object",
    "required": ["finding", "decision", "wanted", "changes", "minimal", "sentences", "model"],
}


def openapi_of(served: Served) -> dict[str, Any]:
    """Return the document for the model that is served now."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"Fair decisions of {served.name}",
            "version": served.digest[:12],
            "description": f"feta {version('feta-fair')}; every answer names its model's sha256.",
        },
        "paths": _paths(served),
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
        "Decision": {"type": "object", "properties": {"decision": outcome, "model": DIGEST}},
        "Decisions": {
            "type": "object",
            "properties": {
                "decisions": {"type": "array", "items": {"anyOf": [outcome, {"type": "null"}]}},
                "refused": {"type": "array", "items": refused},
                "model": DIGEST,
            },
        },
        "Tensors": {
            "type": "object",
            "required": ["inputs"],
            "properties": {
                "id": {"type": "string"},
                "inputs": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "required": ["name", "datatype", "shape", "data"],
                        "properties": {
                            "name": {"enum": [a.name for a in served.model.space.attributes]},
                            "datatype": {"type": "string"},
                            "shape": {"type": "array", "items": {"type": "integer"}},
                            "data": {"type": "array"},
                        },
                    },
                },
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


def _paths(served: Served) -> dict[str, Any]:
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
        "/v1/explain": {
            "post": _post("Give reasons for the decision about one person", QUESTION, [EXPLANATION])
        },
        "/v1/reload": {
            "post": {
                "summary": "Open the model file again",
                "security": SECURITY,
                "responses": {
                    "200": _answer("Loaded", {"type": "object", "properties": {"model": DIGEST}}),
                    **_refusals({"409": "The file cannot be used; the old model stays"}),
                },
            }
        },
        **{path: _get(path, summary) for path, summary in GETS},
        **_inference_paths(served.name),
    }


def _inference_paths(name: str) -> dict[str, Any]:
    """Return the addresses of the Open Inference Protocol."""
    one = f"/v2/models/{name}"
    tensors = {"$ref": "#/components/schemas/Tensors"}
    infer = _post("Decide the people of tensors", tensors, [{"type": "object"}])
    version = {"parameters": [VERSION]}
    unknown = _refusals({"404": "The version is not the one that is served"})
    paths: dict[str, Any] = {
        "/v2": _get("/v2", "The server"),
        one: _get(one, "The tensors of a request and of an answer"),
        f"{one}/ready": _get(one, "Whether the model is ready"),
        f"{one}/infer": {"post": infer},
    }
    for suffix, summary in (("", "The tensors of this version"), ("/ready", "Whether it is ready")):
        got = _get(one, summary)
        got["get"]["responses"] |= unknown
        paths[f"{one}/versions/{{version}}{suffix}"] = version | got
    versioned = infer | {"responses": infer["responses"] | unknown}
    paths[f"{one}/versions/{{version}}/infer"] = version | {"post": versioned}
    return paths


def _get(path: str, summary: str) -> dict[str, Any]:
    kind = "text/plain" if path == "/metrics" else "application/json"
    schema = {"type": "string" if path == "/metrics" else "object"}
    responses: dict[str, Any] = {
        "200": {"description": "OK", "content": {kind: {"schema": schema}}}
    }
    if path in OPEN:
        return {"get": {"summary": summary, "responses": responses}}
    responses |= _refusals({"401": REFUSALS["401"]})
    return {"get": {"summary": summary, "security": SECURITY, "responses": responses}}


def _answer(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _refusals(texts: dict[str, str]) -> dict[str, Any]:
    return {status: _answer(text, ERROR) for status, text in texts.items()}


def _post(summary: str, body: dict[str, Any], answers: list[dict[str, Any]]) -> dict[str, Any]:
    answer = answers[0] if len(answers) == 1 else {"anyOf": answers}
    return {
        "summary": summary,
        "security": SECURITY,
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {"200": _answer("OK", answer), **_refusals(REFUSALS)},
    }
