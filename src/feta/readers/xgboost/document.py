"""Documents of XGBoost in JSON or UBJSON."""

from feta.errors import NetworkError
from feta.readers.trees.document import Place, parse_json
from feta.readers.xgboost.ubjson import parse_ubjson


def parse_document(content: bytes) -> Place:
    """Parse a model in JSON or UBJSON; the first bytes distinguish them."""
    start = content[:64].lstrip()
    if not start.startswith(b"{"):
        raise NetworkError(
            f"the file is not a model of XGBoost in JSON or UBJSON: got the first bytes "
            f"{content[:8]!r}; load it with the XGBoost that wrote it and save it as .json or .ubj"
        )
    if start[1:].lstrip()[:1] not in (b'"', b"}"):
        return Place(parse_ubjson(content), "")
    return parse_json(content)
