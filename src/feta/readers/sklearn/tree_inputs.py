"""Inputs of a tree ensemble: raw tables or encoded people, and the steps before the trees."""

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from feta.absorb.transformers import Features
from feta.absorb.tree_features import encoded_features, table_features
from feta.arrays import Array, Matrix
from feta.errors import NetworkError
from feta.io.raw_table import RawTable, TableMaker
from feta.readers.sklearn.column_names import check_columns
from feta.readers.sklearn.pipeline import Estimator, raw_table
from feta.space.feature_space import FeatureSpace

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class EncodedTable:
    """Encoded people as the input of an estimator that was fitted on them."""

    names: tuple[str, ...]  # of the columns of the estimator; empty if it has none

    def __call__(self, people: Matrix) -> "pd.DataFrame | Array":
        """Return the people, with the names of the columns if the estimator has names."""
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        return pd.DataFrame(people, columns=list(self.names)) if self.names else people


@dataclass(frozen=True, slots=True)
class TreeInputs:
    """What trees read: a table of people, and fitted steps after it."""

    space: FeatureSpace
    table: TableMaker
    columns: Features  # what the columns of the table depend on
    steps: Estimator = None

    def preprocessing(self, own: Estimator) -> Estimator:
        """Return all steps before the trees; `own` is the estimator's own first step, or None."""
        from sklearn.pipeline import Pipeline  # noqa: PLC0415 - import feta stays light
        from sklearn.preprocessing import FunctionTransformer  # noqa: PLC0415 - as above

        steps = [] if self.steps is None else list(self.steps.steps)
        steps += [] if own is None else [("the estimator's own columns", own)]
        return Pipeline(steps) if steps else FunctionTransformer()

    def walked(self, own: Estimator) -> Estimator:
        """Return the same steps, with the plain check of numbers shown as what it is: nothing."""
        if own is None:
            return self.preprocessing(None)
        from sklearn.preprocessing import FunctionTransformer  # noqa: PLC0415 - as above

        shown = copy.copy(own)
        shown.transformers_ = [
            (name, FunctionTransformer() if name == "numerical" else step, columns)
            for name, step, columns in own.transformers_
        ]
        return self.preprocessing(shown)


def inputs_of(
    steps: Estimator, last: Estimator, space: FeatureSpace, *, table: TableMaker | None
) -> TreeInputs:
    """Return the inputs of a bare estimator after some steps, or None."""
    if table is not None:
        return TreeInputs(space, table, table_features(space, table.names), steps)
    if steps is not None:
        made = raw_table(steps_and(steps, last), space)
        return TreeInputs(space, made, table_features(space, made.names), steps)
    return _bare_inputs(last, space)


def steps_and(steps: Estimator, last: Estimator) -> Estimator:
    """Return the pipeline of steps and an estimator."""
    from sklearn.pipeline import Pipeline  # noqa: PLC0415 - import feta stays light

    return Pipeline([*steps.steps, ("trees", last)])


def _bare_inputs(last: Estimator, space: FeatureSpace) -> TreeInputs:
    """Return raw columns if the estimator names them, or encoded people, or columns in order."""
    known = [attribute.name for attribute in space.attributes]
    names = tuple(str(name) for name in getattr(last, "feature_names_in_", ()))
    own: Any = getattr(last, "_preprocessor", None)
    if names and set(names) <= set(known):
        made = RawTable(space, names)
        if own is not None:
            from sklearn.pipeline import Pipeline  # noqa: PLC0415 - import feta stays light

            made = raw_table(Pipeline([("columns", own), ("trees", last)]), space)
        return TreeInputs(space, made, table_features(space, names))
    if last.n_features_in_ == space.width:
        check_columns(space, last)
        return TreeInputs(space, EncodedTable(names), encoded_features(space))
    if not names and last.n_features_in_ == len(known):
        made = RawTable(space, tuple(known), as_frame=False)
        return TreeInputs(space, made, table_features(space, made.names))
    raise NetworkError(
        f"the estimator was fitted on other columns: got {last.n_features_in_}; expected "
        f"{len(known)}, the columns of the schema, or {space.width}, those of encoded people"
    )
