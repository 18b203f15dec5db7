"""Models: what a .feta file says, and whether a certificate is about it."""

from typing import Any

from feta_check.forest import Forest
from feta_check.model_file import ModelFile
from feta_check.network import Network
from feta_check.people import Space
from feta_check.reading import canonical, checkable, describe, digest, readable
from feta_check.rules import Rule
from feta_check.votes import Votes

RELATION = "all sensitive values"
SCORERS: dict[str, Any] = {"forest": Forest, "network": Network.read}
FACTS = {"fingerprints", "outcomes", "rule", "space", "table", "version", "votes"}


class Model:
    """What a .feta file says: columns, scorer, rule and votes."""

    def __init__(self, file: ModelFile) -> None:
        facts = file.description
        kinds = facts.keys() - FACTS
        checkable(len(kinds) == 1 and kinds <= SCORERS.keys(), "this model")
        with describe("the model is damaged"):
            self.space, self.rule = Space(facts["space"]), Rule.read(facts["rule"])
            self.scorer = SCORERS[kinds.pop()](file, self.space)
            self.votes = Votes(file, self.rule, self.space)
        fits = self.scorer.outputs == self.rule.outputs and bool(self.space.axes)
        readable(fits, "the model has another number of scores than its rule")

    @staticmethod
    def schema(file: ModelFile) -> bytes:
        """Return the schema that the certificate of a model must have."""
        names = {"columns": "space", "outcomes": "outcomes", "rule": "rule"}
        parts = {name: file.description.get(key) for name, key in names.items()}
        return canonical(parts | {"relation": RELATION})


def check_header(header: dict[str, Any], schema: bytes, file: ModelFile) -> None:
    """Raise unless model and schema are those of the certificate."""
    checkable(header["relation"] == RELATION, "another relation")
    same = digest(file.content) == header["model_sha256"]
    readable(same, "the model is not the one of the certificate")
    version = file.description.get("version")
    readable(version in (1, 2), f"got version {version!r} of a .feta file; expected 1 or 2")
    readable(Model.schema(file) == schema, "schema.json is not the schema of the model")
    rule = digest(canonical(file.description.get("rule")))
    readable(rule == header["rule_sha256"], "the rule is not the one of the certificate")
