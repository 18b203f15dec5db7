"""A table in raw columns with its labels and its feature space."""

from dataclasses import dataclass

import pandas as pd

from feta.arrays import Flags
from feta.space.feature_space import FeatureSpace


@dataclass(frozen=True, eq=False)
class Dataset:
    """A frame, one label per row (True is favorable), and the space.

    `notes` list irregularities of the rows.
    """

    name: str
    title: str
    source: str
    frame: pd.DataFrame
    labels: Flags
    space: FeatureSpace
    favorable: str
    unfavorable: str
    notes: tuple[str, ...] = ()
