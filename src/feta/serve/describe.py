"""What a model reads and how it decides: /v1/schema and /v1/card."""

from importlib.metadata import version
from typing import Any

from feta.serve.served import Served
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Levels
from feta.space.limits import limits_of


def schema_of(served: Served) -> dict[str, Any]:
    """Return the columns of a record; derived ones are computed."""
    space = served.model.space
    columns = [
        _column(attribute, sensitive=space.is_sensitive(attribute))
        for attribute in space.attributes
        if not isinstance(attribute, Derived)
    ]
    return {
        "columns": columns,
        "outcomes": list(served.model.outcomes),
        "counterparts": served.model.relation.size if served.model.relation.finite else None,
        "name": served.name,
        "model": served.digest,
    }


def _column(attribute: Attribute, *, sensitive: bool) -> dict[str, Any]:
    assert not isinstance(attribute, Derived)  # the caller leaves them out
    content: dict[str, Any] = {
        "name": attribute.name,
        "kind": attribute.kind,
        "sensitive": sensitive,
        "missing": attribute.missing,
        "help": attribute.domain(),
    }
    if isinstance(attribute, Categorical):
        return content | {"values": list(attribute.values), "other": attribute.other}
    low, high = limits_of(attribute)
    numbers = list(attribute.numbers) if isinstance(attribute, Levels) else None
    if isinstance(attribute, Integer):
        low, high = int(low), int(high)
    open_limits = not (sensitive or attribute.strict)
    return content | {"low": low, "high": high, "values": numbers, "open": open_limits}


def card_of(served: Served) -> dict[str, Any]:
    """Return what the model is and how its counterparts vote."""
    model, predictor = served.model, served.predictor
    weights = predictor.weights
    return {
        "name": served.name,
        "model": served.digest,
        "fingerprint": model.fingerprint,
        "feta": version("feta-fair"),
        "provenance": model.scorer.provenance,
        "scorer": model.scorer.description,
        "rule": _rule(served),
        "sensitive": [attribute.name for attribute in model.space.sensitive],
        "read": list(served.required),
        "counterparts": model.relation.size if model.relation.finite else None,
        **({"relation": list(model.relation.sentences)} if model.relation.fingerprint else {}),
        "vote": {
            "kind": predictor.vote,
            "level": predictor.level,
            "weights": "equal" if weights is None else "stored",
            "assignments": None if weights is None else len(weights.votes),
            "fitted_on": predictor.fitted_on,
        },
        "guarantee": (
            "The decision is a function of the columns in `read` and of the stored numbers. "
            "Sensitive columns are never read. It does not depend on batch, order or machine."
        ),
        "loaded": served.loaded,
    }


def _rule(served: Served) -> str:
    model = served.model
    log_odds = model.scorer.link == "logit"
    return model.rule.explanation(model.outcomes, unit="", log_odds=log_odds)
