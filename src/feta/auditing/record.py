"""Raw records of people who are known to belong to a space."""

from collections.abc import Sequence

from feta.arrays import Matrix, Vector
from feta.model import Model
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Levels, Real, Value
from feta.space.feature_space import FeatureSpace


def moving_attributes(model: Model) -> list[Attribute]:
    """Return the attributes in which counterparts may differ, without derived ones."""
    space, moving = model.space, model.relation.moving
    return [
        attribute
        for attribute in space.attributes
        if not isinstance(attribute, Derived) and moving[space.columns_of(attribute)].any()
    ]


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


def record_columns(
    space: FeatureSpace, people: Matrix, attributes: Sequence[Attribute] | None = None
) -> dict[str, list[Value]]:
    """Return the columns of the records that `record_of` gives for these people."""
    return {
        attribute.name: _decoded(attribute, people[:, space.columns_of(attribute)])
        for attribute in (space.attributes if attributes is None else attributes)
    }


def _decoded(attribute: Attribute, codes: Matrix) -> list[Value]:
    if isinstance(attribute, Categorical):
        values = attribute.all_values
        return [values[index] for index in codes.argmax(axis=1).tolist()]
    if isinstance(attribute, Integer | Levels | Real) and not attribute.missing:
        numbers: list[float] = codes[:, 0].tolist()
        return [int(number) for number in numbers] if isinstance(attribute, Integer) else [*numbers]
    return [attribute.decode(code) for code in codes]
