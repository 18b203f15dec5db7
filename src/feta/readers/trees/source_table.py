"""People as the input of a library, on which its scores are compared with those of a forest."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Matrix
from feta.errors import NetworkError
from feta.readers.trees.features import Feature, ListedFeature, Value
from feta.scorer.forest.forest import Forest
from feta.space.attribute import Attribute, Categorical

if TYPE_CHECKING:
    import pandas as pd

# Rows on which both are scored.
CHECKED_ROWS = 512


@dataclass(frozen=True, slots=True, eq=False)
class SourceTable:
    """The columns that a model reads, in its order."""

    names: Sequence[str]
    attributes: Sequence[Attribute]
    features: Sequence[Feature]
    categories: Sequence[Sequence[Value]]  # per feature; empty if it has none

    def matrix(self, people: Matrix) -> Matrix:
        """Return the numbers that the model reads, with NaN where they are missing."""
        columns = []
        for feature in self.features:
            if isinstance(feature, ListedFeature):
                columns.append(feature.numbers[feature.domain.indices(people)])
            else:
                numbers = np.array(people[:, feature.column])
                if feature.flag >= 0:
                    numbers[people[:, feature.flag] == 1] = np.nan
                columns.append(numbers)
        return np.stack(columns, axis=1)

    def frame(self, people: Matrix) -> "pd.DataFrame":
        """Return a table in which categories have their values, not their codes."""
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        matrix = self.matrix(people)
        columns: dict[str, object] = {}
        for index, name in enumerate(self.names):
            attribute, feature = self.attributes[index], self.features[index]
            if self.categories[index]:
                assert isinstance(attribute, Categorical)
                assert isinstance(feature, ListedFeature)
                known = list(self.categories[index])
                values = [value if value in known else None for value in attribute.all_values]
                indices = feature.domain.indices(people)
                columns[name] = pd.Categorical([values[at] for at in indices], categories=known)
            else:
                columns[name] = matrix[:, index]
        return pd.DataFrame(columns)


def check_bits(forest: Forest, people: Matrix, expected: Matrix, library: str) -> None:
    """Raise unless the forest's scores are those of the library, bit for bit."""
    scores = forest(people)
    expected = np.asarray(expected, dtype=np.float64).reshape(scores.shape)
    different = np.flatnonzero((scores != expected).any(axis=1))
    if different.size:
        row = int(different[0])
        raise NetworkError(
            f"the scores are not those of {library}: got {scores[row].tolist()} for random row "
            f"{row}; expected {expected[row].tolist()}; {different.size} of {len(people)} rows "
            "differ; FETA does not read this model exactly"
        )
