"""Files of stored audits: JSON without surprises, CSV lines, digests; and pages to write."""

import csv
import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from feta.errors import SchemaError

NO_JSON = "invalid file: got no JSON; expected an audit.json; audit again"


def read_json(file: Path) -> Any:  # noqa: ANN401 - JSON
    """Read a JSON file; reject numbers that are not finite, and repeated keys."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SchemaError(f"{file}: no such file; feta audit --out writes it") from None
    except UnicodeError:
        raise SchemaError(f"{file}: {NO_JSON}") from None
    try:
        return json.loads(
            text,
            parse_constant=_reject_number,
            parse_float=_parse_finite,
            object_pairs_hook=_unique_keys,
        )
    except SchemaError as error:
        raise SchemaError(f"{file}: {error}") from None
    except (ValueError, RecursionError):
        raise SchemaError(f"{file}: {NO_JSON}") from None


def _reject_number(name: str) -> NoReturn:
    raise SchemaError(f"invalid number: got {name}; expected finite numbers only; audit again")


def _parse_finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _reject_number(text)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Reject a repeated key: two parsers could read different values."""
    keys = Counter(key for key, _ in pairs)
    repeated = [key for key, count in keys.items() if count > 1]
    if repeated:
        raise SchemaError(f"repeated key: got {repeated[0]!r} twice; expected it once; audit again")
    return dict(pairs)


def is_unchanged(path: Path, digest: str) -> bool:
    """Return whether a file has a SHA-256; a missing file has not changed."""
    if not path.is_file():
        return True
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == digest


def read_lines(path: Path) -> Iterator[dict[str, str]]:
    """Yield the lines of a CSV file by column."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            names = reader.fieldnames or []
            if len(set(names)) != len(names):
                raise SchemaError(f"{path}: a column occurs twice; audit again")
            yield from reader
    except (UnicodeDecodeError, csv.Error) as error:
        raise SchemaError(f"{path}: not a CSV file in UTF-8: {error}; audit again") from None


def write_page(path: Path, page: str) -> None:
    """Write a page."""
    path.write_text(page, encoding="utf-8")
