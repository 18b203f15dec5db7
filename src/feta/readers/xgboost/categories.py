"""Categories that an XGBoost model stores, in the order of their codes."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from feta.arrays import Counts
from feta.errors import NetworkError
from feta.readers.trees.document import Place
from feta.readers.trees.features import Value
from feta.space.attribute import Categorical

# Stands for a character that the file does not contain.
LOST = "\0"


@dataclass(frozen=True, slots=True)
class StoredCategories:
    """The categories of one feature.

    XGBoost stores texts one after the other, with the offset of each. From pandas tables, it counts
    characters instead of bytes. If a text is not ASCII, the two differ, and the end of the texts is
    lost. `characters` are the texts by this count, with LOST in place of lost characters.
    """

    values: tuple[Value, ...] = ()
    characters: tuple[str, ...] = ()  # empty if both counts give the same texts

    def of(self, attribute: Categorical) -> tuple[Value, ...]:
        """Return the categories of a column; its values decide how the file counts."""
        if not self.characters:
            return self.values
        listed = [value for value in attribute.values if isinstance(value, str)]
        restored = tuple(_restored(text, listed) for text in self.characters)
        readings = [
            values
            for values in dict.fromkeys((self.values, restored))
            if set(listed) <= set(values) and len(set(values)) == len(values)
        ]
        if len(readings) != 1:
            raise NetworkError(
                f"the codes of the categories of {attribute.name!r} are unknown: got texts that "
                "are not ASCII, which XGBoost does not store completely; expected them to match "
                "the values of the schema in one way; pass "
                f"categories={{{attribute.name!r}: [...]}} in the order of the codes"
            )
        return readings[0]


def _restored(text: str, values: list[str]) -> str:
    """Return the only value of which this is the known part; the text itself if none is."""
    known = text.rstrip(LOST)
    matches = [value for value in values if len(value) == len(text) and value.startswith(known)]
    return matches[0] if len(matches) == 1 else text.replace(LOST, "?")


def read_categories(model: Place, n_features: int) -> tuple[StoredCategories, ...]:
    """Return the categories of each feature; none if the model does not store them."""
    if not model.has("cats"):
        return ()
    features = model.member("cats").member("enc").items()
    if len(features) not in (0, n_features):
        raise NetworkError(
            f"wrong number of lists of categories: got {len(features)}; expected {n_features}"
        )
    return tuple(_read_feature(feature) for feature in features)


def _read_feature(feature: Place) -> StoredCategories:
    """Return the categories of one feature: texts, or numbers."""
    values = feature.member("values")
    if not feature.has("offsets"):
        return StoredCategories(tuple(values.integers().tolist()))
    offsets = feature.member("offsets")
    content = np.asarray(values.integers() % 256, dtype=np.uint8).tobytes()
    bounds = offsets.integers()
    if not bounds.size and not content:
        return StoredCategories()
    _check_offsets(offsets, bounds, len(content))
    if content.isascii():
        text = content.decode("ascii")
        return StoredCategories(tuple(text[i:j] for i, j in pairwise(bounds.tolist())))
    by_bytes = tuple(content[i:j].decode(errors="replace") for i, j in pairwise(bounds.tolist()))
    # The end may be part of a character.
    known = content.decode(errors="ignore").ljust(len(content), LOST)
    by_characters = tuple(known[i:j] for i, j in pairwise(bounds.tolist()))
    return StoredCategories(by_bytes, by_characters)


def _check_offsets(place: Place, offsets: Counts, size: int) -> None:
    ends = offsets[[0, -1]].tolist() if offsets.size else []
    if ends != [0, size] or (np.diff(offsets) < 0).any():
        raise place.error(f"ascending numbers from 0 to {size}")
