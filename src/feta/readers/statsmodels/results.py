"""Fitted results of statsmodels: parameters, link, design matrix, and their own predictions."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from feta.arrays import Matrix, Vector
from feta.errors import NetworkError, missing
from feta.io.raw_table import RawTable, TableMaker
from feta.readers.statsmodels.design import FormulaTerms, NamedColumns, formula_columns
from feta.space.feature_space import FeatureSpace

Results = Any  # statsmodels ships no types
Kind = Literal["identity", "logit", "log", "probit"]

# What models predict; the parameters are those of the linear predictor, and no others.
KINDS: dict[str, Kind] = {
    "OLS": "identity",
    "WLS": "identity",
    "GLS": "identity",
    "RLM": "identity",
    "QuantReg": "identity",
    "Logit": "logit",
    "Probit": "probit",
    "Poisson": "log",
}

# Links of GLM.
LINKS: dict[str, Kind] = {
    "Identity": "identity",
    "Logit": "logit",
    "Log": "log",
    "Probit": "probit",
}


def is_statsmodels(source: object) -> bool:
    """Return whether an object is a fitted result of statsmodels."""
    library = type(source).__module__.startswith("statsmodels.")
    return library and all(hasattr(source, name) for name in ("model", "params", "predict"))


@dataclass(frozen=True, slots=True, eq=False)
class LinearResults:
    """Results whose predictions follow from a linear predictor."""

    source: Results
    kind: Kind
    step: NamedColumns | FormulaTerms  # makes the design matrix of the table's rows
    columns: tuple[str, ...]  # the raw columns that are read
    table: TableMaker | None  # makes them; None for encoded people, in order

    @property
    def parameters(self) -> Vector:
        """The parameters, one per column of the design matrix."""
        return np.asarray(self.source.params, dtype=np.float64)

    def rows(self, people: Matrix) -> Any:  # noqa: ANN401 - a frame or an array
        """Return people as the raw table, or as they are encoded."""
        return people if self.table is None else self.table(people)

    def predict(self, rows: Any) -> Vector:  # noqa: ANN401 - a frame or an array
        """Return the results' own predictions for raw rows, or for encoded ones."""
        return np.asarray(self.source.predict(self._exogenous(rows)), dtype=np.float64)

    def linear(self, rows: Any) -> Vector:  # noqa: ANN401 - a frame or an array
        """Return the results' own linear predictor."""
        if self.kind == "identity":
            return self.predict(rows)
        own = self.source.predict(self._exogenous(rows), which="linear")
        return np.asarray(own, dtype=np.float64)

    def _exogenous(self, rows: Any) -> Any:  # noqa: ANN401 - a frame or an array
        """Return what `predict` takes: raw columns for a formula, else the design matrix."""
        return rows if isinstance(self.step, FormulaTerms) else self.step.transform(rows)


def linear_results(
    source: Results, space: FeatureSpace, table: TableMaker | None = None
) -> LinearResults:
    """Read the structure of results; `table` makes the raw table, if that is not the default."""
    kind = _kind(source.model)
    _check(source)
    step = _step(source, tuple(attribute.name for attribute in space.attributes))
    if step is None:
        return LinearResults(source, kind, _encoded_design(source, space), (), None)
    columns = step.columns
    made = table or RawTable(space, columns)
    if tuple(made.names) != columns:
        raise NetworkError(
            f"the table has other columns than the results: got {tuple(made.names)!r}; "
            f"expected {columns!r}"
        )
    return LinearResults(source, kind, step, columns, made)


def _encoded_design(source: Results, space: FeatureSpace) -> NamedColumns:
    """Return the design matrix over encoded people: as many columns are no constant."""
    columns = range(space.width) if np.shape(source.model.exog)[1] == space.width else ()
    return _design(source, columns)


def _design(source: Results, columns: Collection[int]) -> NamedColumns:
    """Return the design matrix; its constant is a column of one value, unless it is a person's.

    A column that had one value in training is still a column of the model.
    """
    model = source.model
    rows = np.asarray(model.exog, dtype=np.float64)
    single = np.flatnonzero((rows == rows[:1]).all(axis=0)).tolist()
    index = next((column for column in single if column not in columns), None)
    value = 1.0 if index is None else float(rows[0, index])
    return NamedColumns(tuple(str(name) for name in model.exog_names), index, value)


def _kind(model: Any) -> Kind:  # noqa: ANN401 - statsmodels ships no types
    owner, name = type(model).__module__, type(model).__name__
    if owner.startswith("statsmodels."):
        if name == "GLM":
            link = type(model.family.link)
            if link.__module__.startswith("statsmodels.") and link.__name__ in LINKS:
                return LINKS[link.__name__]
            raise NetworkError(
                f"the link of the GLM is not supported: got {link.__name__}; "
                f"expected one of {', '.join(LINKS)}"
            )
        if name in KINDS:
            return KINDS[name]
    raise NetworkError(
        f"the model of statsmodels is not supported: got {name}; "
        f"expected GLM or one of {', '.join(KINDS)}"
    )


def _check(source: Results) -> None:
    """Reject offsets, and parameters that are not one per column."""
    model = source.model
    for name in ("offset", "exposure"):
        number = getattr(model, name, None)
        if getattr(model, f"_has_{name}", False) or np.any(number):
            raise NetworkError(
                f"the model of statsmodels has an {name}: got one more number per person; "
                "expected none; fit it without"
            )
    shape, width = np.shape(source.params), np.shape(model.exog)[1]
    if shape != (width,):
        raise NetworkError(
            f"the results have other parameters than the linear predictor's: got {shape}; "
            f"expected {width}, one per column"
        )


def _step(source: Results, known: tuple[str, ...]) -> NamedColumns | FormulaTerms | None:
    """Return how raw columns become the design matrix; None if people are encoded."""
    design = _design_info(source.model)
    if design is not None:
        return FormulaTerms(design, formula_columns(design, known))
    names = [str(name) for name in source.model.exog_names]
    named = _design(source, [index for index, name in enumerate(names) if name in known])
    if set(named.columns) <= set(known):
        return named
    if all(name == f"x{index}" for index, name in enumerate(named.columns, start=1)):
        return None  # an array without names
    unknown = next(name for name in named.columns if name not in known)
    reason = missing(unknown, list(known), owner="schema")
    raise NetworkError(
        f"the model of statsmodels reads {unknown!r}: {reason}; name the columns as in the schema, "
        "or fit it with a formula"
    )


def _design_info(model: Any) -> Any:  # noqa: ANN401 - statsmodels ships no types
    """Return the design of a formula; None if there is no formula."""
    if getattr(model, "formula", None) is None:
        return None
    data = model.data
    design = getattr(data, "model_spec", None) or getattr(data, "design_info", None)
    if not type(design).__module__.startswith("patsy."):
        raise NetworkError(
            f"the formula of statsmodels is not supported: got {type(design).__name__}; "
            "expected a design of patsy"
        )
    return design
