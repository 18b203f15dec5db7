"""Raw records of people who are known to belong to a space."""

from collections.abc import Sequence

from feta.arrays import Vector
from feta.space.attribute import Attribute, Value
from feta.space.feature_space import FeatureSpace


def record_of(
    space: FeatureSpace, person: Vector, attributes: Sequence[Attribute] | None = None
) -> dict[str, Value]:
    """Return the raw record of a person, without the check that `space.decode` makes.

    `attributes` are those of the record; all of them by default.
    """
    return {
        attribute.name: attribute.decode(person[space.columns_of(attribute)])
        for attribute in (space.attributes if attributes is None else attributes)
    }
