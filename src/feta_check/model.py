"""Models: what a .feta file says, and whether a certificate is about it."""

from fractions import Fraction
from typing import Any

from feta_check.forest import Forest
from feta_check.model_file import ModelFile
from feta_check.network import Network
from feta_check.people import Space
from feta_check.reading import canonical, checkable, describe, digest, readable
from feta_check.rules import Rule, Votes

RELATION = "all sensitive values"
SCORERS: dict[str, Any] = {"forest": Forest, "network": Network}
FACTS = {"fingerprints", "outcomes", "rule", "space", "table", "version", "votes"}


class Model:
    """What a .feta file says: columns, scorer, rule and votes."""

    def __init__(self, file: ModelFile) -> None:
        facts = file.description
        kinds = facts.keys() - FACTS
        checkable(len(kinds) == 1 and kinds <= SCORERS.keys(), "this model")
        with describe("the model is damaged"):
            self.space, self.rule = Space(facts["space"]), Rule(facts["rule"], Fraction(1))
            self.scorer = SCORERS[kinds.pop()](file, self.space)
            self.votes = Votes(file, self.space.size)
        fits = self.scorer.outputs == self.rule.outputs and bool(self.space.axes)
        readable(fits, "the model has another number of scores than its rule")


def check_header(header: dict[str, Any], schema: bytes, file: ModelFile) -> None:
    """Raise unless model and schema are those of the certificate."""
    checkable(header["relation"] == RELATION, "another relation")
    readable(digest(file.content) == header["model_sha256"], "the certificate has another model")
    facts = file.description.get
    parts = {"columns": facts("space"), "outcomes": facts("outcomes"), "rule": facts("rule")}
    stated = canonical(parts | {"relation": RELATION})
    readable(stated == schema, "schema.json is not the schema of the model")
    rule = digest(canonical(facts("rule")))
    readable(rule == header["rule_sha256"], "the certificate has another rule")
