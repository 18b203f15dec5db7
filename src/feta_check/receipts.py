"""Receipts: one person's claim, and a path that shows that it belongs to a certificate."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from feta_check.certificate import END, HEADER, VERDICTS
from feta_check.reading import Refuted, Unreadable, canonical, digest, exact, parse
from feta_check.signatures import Signature, check_signature, read, statement

FORMAT, VERSION = "feta-receipt", 1
FIELDS = {
    "claim", "end", "format", "header", "index", "path", "schema", "signature", "version",
}  # fmt: skip
# A certificate of 2^63 claims has paths of 63 hashes.
MAX_PATH = 63


class Receipt:
    """A receipt whose claim is one of the claims under the stated root."""

    def __init__(self, path: Path) -> None:
        content = read(path)
        if content.startswith(b"PK"):
            raise Unreadable(f"{path}: got an archive; unpack it, and check the folder")
        fields = parse(content.removesuffix(b"\n"), "the receipt")
        if (fields.get("format"), fields.get("version")) != (FORMAT, VERSION):
            raise Unreadable(f"{path}: got another format; expected a {FORMAT} of version 1")
        if fields.keys() != FIELDS:
            raise Unreadable("the receipt has unknown or missing fields")
        self.header: dict[str, Any] = _object(fields["header"], HEADER)
        self.end: dict[str, Any] = _object(fields["end"], END)
        self.claim: dict[str, Any] = _object(fields["claim"])
        self.schema: bytes = canonical(fields["schema"])
        self.envelope = None if fields["signature"] is None else _object(fields["signature"])
        self._check_parts()
        self._check_path(fields["index"], fields["path"])

    def _check_parts(self) -> None:
        if (self.header["format"], self.header["version"]) != ("feta-certificate", 1):
            raise Unreadable("the receipt is about another version of certificates")
        if digest(canonical(self.header)) != self.end["header_sha256"]:
            raise Unreadable("the header of the receipt does not belong to its end line")
        if digest(self.schema) != self.header["schema_sha256"]:
            raise Unreadable("the schema of the receipt is not the one of the certificate")
        if type(self.claim.get("row")) is not int or self.claim.get("verdict") not in VERDICTS:
            raise Unreadable("the claim of the receipt has no row or verdict")

    def _check_path(self, index: Any, path: Any) -> None:
        count = self.end["claims"]
        if type(count) is not int or type(index) is not int or not 0 <= index < count:
            raise Unreadable(f"got the index {index!r}; expected one below the number of claims")
        if type(path) is not list or len(path) > MAX_PATH:
            raise Unreadable(f"the path is invalid; expected at most {MAX_PATH} hashes")
        if root_of(canonical(self.claim), index, count, path) != self.end["root"]:
            raise Unreadable("the path does not lead from this claim to the root: one was changed")

    def described(self) -> Iterator[str]:
        """Yield one line per column: the data that the claim is about, in words."""
        try:
            columns = parse(self.schema, "the schema")["columns"]
            raw = [column for column in columns if column["kind"] != "derived"]
            for column, cell in zip(raw, self.claim.get("person", []), strict=False):
                sensitive = " (sensitive)" if column.get("sensitive") else ""
                yield f"{column['name']}{sensitive}: {_value(column, cell)}"
        except (AttributeError, LookupError, OverflowError, Refuted, TypeError) as error:
            raise Unreadable(f"the receipt does not describe a person: {error}") from None

    @property
    def seal(self) -> str:
        """The digest of the end line, which binds all claims and the header."""
        return digest(canonical(self.end))

    def check_signature(self, keys: Sequence[bytes]) -> Signature:
        """Raise unless the holder of one of the keys has signed the certificate."""
        payload = statement(self.header, self.end)
        return check_signature("Certificate", self.envelope, payload, keys)


def root_of(line: bytes, index: int, count: int, path: list[Any]) -> str | None:
    """Return the root above a leaf (RFC 9162, 2.1.3.2); None if the path has another length."""
    node, last = hashlib.sha256(b"\0" + line).digest(), count - 1
    for text in path:
        if last == 0:
            return None
        sibling = _hash(text)
        if index & 1 or index == last:
            node = hashlib.sha256(b"\1" + sibling + node).digest()
            while index and not index & 1:  # the right edge has no siblings here
                index, last = index >> 1, last >> 1
        else:
            node = hashlib.sha256(b"\1" + node + sibling).digest()
        index, last = index >> 1, last >> 1
    return node.hex() if last == 0 else None


def _value(column: dict[str, Any], cell: Any) -> object:
    if column["kind"] != "category":
        return "missing" if cell is None else float(exact(cell))
    values = [*column["values"], *["other"] * bool(column.get("other"))]
    return values[cell] if 0 <= cell < len(values) else "missing"


def _hash(text: Any) -> bytes:
    try:
        node = bytes.fromhex(text)
    except (TypeError, ValueError):
        node = b""
    if len(node) != 32 or node.hex() != text:
        raise Unreadable("the path is invalid; expected hashes of 64 hexadecimal digits")
    return node


def _object(value: Any, names: set[str] | None = None) -> dict[str, Any]:
    if type(value) is not dict or names not in (None, value.keys()):
        raise Unreadable("a part of the receipt has unknown or missing fields")
    return value
