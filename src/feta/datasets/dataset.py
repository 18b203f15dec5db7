"""Dataset: a table in raw columns, who was decided well, and the space they live in."""

from dataclasses import dataclass

import pandas as pd

from feta.arrays import Flags
from feta.space.feature_space import FeatureSpace


@dataclass(frozen=True, eq=False)
class Dataset:
    """A frame, one label a row (True is favorable), and the space; `notes` say what is odd in the rows."""

    name: str
    title: str
    source: str
    frame: pd.DataFrame
    labels: Flags
    space: FeatureSpace
    favorable: str
    unfavorable: str
    notes: tuple[str, ...] = ()
