"""Fingerprints of attributes."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import fields

from feta.space.attribute import Attribute

# Fields that were added after the first file format. A fingerprint contains their names only where
# they are set, so that fingerprints of earlier files stay valid.
LATER_FIELDS = ("other", "strict")


def hash_attributes(attributes: Sequence[Attribute]) -> str:
    """Return the SHA-256 of attributes, in order."""
    content = [[attribute.kind, *_fields(attribute)] for attribute in attributes]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _fields(attribute: Attribute) -> list[object]:
    """List the values of an attribute's first fields, and the names of later ones that are set."""
    values = {field.name: getattr(attribute, field.name) for field in fields(attribute)}
    later = [name for name in LATER_FIELDS if values.pop(name, False)]
    return [value for name, value in values.items() if name != "missing" or value] + later
