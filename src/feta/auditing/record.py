"""Raw records of people who are known to belong to a space."""

from feta.arrays import Vector
from feta.space.attribute import Value
from feta.space.feature_space import FeatureSpace


def record_of(space: FeatureSpace, person: Vector) -> dict[str, Value]:
    """Return the raw record of a person, without the check that `space.decode` makes."""
    return {
        attribute.name: attribute.decode(person[space.columns_of(attribute)])
        for attribute in space.attributes
    }
