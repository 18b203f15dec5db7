"""Reader of fitted linear models of statsmodels, with or without a formula."""

from typing import TYPE_CHECKING

import numpy as np

from feta.absorb.absorb import absorb
from feta.arrays import Matrix
from feta.errors import FetaError, NetworkError
from feta.io.raw_table import TableMaker
from feta.readers.statsmodels.design import NamedColumns
from feta.readers.statsmodels.results import LinearResults, linear_results
from feta.scorer.network.agreement import check_agreement, with_inverse_link
from feta.scorer.network.network import Network
from feta.space.feature_space import FeatureSpace
from feta.space.sampling import draw_people

if TYPE_CHECKING:
    from statsmodels.base.model import Results

# People on which both are scored.
CHECKED_ROWS = 256


def read_statsmodels(
    results: "Results",
    space: FeatureSpace,
    *,
    people: Matrix | None = None,
    table: TableMaker | None = None,
) -> Network:
    """Read fitted results of statsmodels.

    Supported are OLS, WLS, GLS, RLM, QuantReg, Logit, Probit, Poisson, and GLM with an identity,
    log, logit or probit link. The score is the linear predictor. Results predict numbers, not
    classes: with a logit link these are probabilities, so use `Threshold.at_probability`. With a
    log link, use `Threshold.at_prediction`. A constant is recognized wherever it stands.

    A formula of patsy is read if each of its terms depends on one column. Without a formula,
    columns are found by their names; an array without names has encoded people, in order. `table`
    makes the raw table, if that is not a frame of these columns.

    Raises
    ------
    NetworkError
        If the model is of another kind, has an offset or an interaction of columns, or if its own
        predictions differ on random people or on those of `people`.

    Examples
    --------
    >>> import feta, pandas as pd, statsmodels.formula.api as smf
    >>> frame = pd.DataFrame({"age": [20, 60, 25, 70], "income": [1, 2, 7, 8], "y": [1, 3, 7, 9]})
    >>> results = smf.ols("y ~ age + income", frame).fit()
    >>> space = feta.FeatureSpace.from_frame(frame[["age", "income"]], sensitive=["age"])
    >>> network = read_statsmodels(results, space)
    >>> network(space.encode([{"age": 20, "income": 1}])).round(2).tolist()
    [[1.03]]
    """
    read = linear_results(results, space, table)
    try:
        network = _network(read, space)
        rows = draw_people(space, np.random.default_rng(0), CHECKED_ROWS)
        rows = rows if people is None else np.concatenate([rows, people])
        if network.width == space.width:  # else the model rejects it
            check_agreement(network, rows, read.linear(read.rows(rows)), "those of statsmodels")
    except FetaError:
        raise
    except Exception as error:  # the library may raise anything
        raise NetworkError(
            f"the results of statsmodels cannot be evaluated ({type(error).__name__}: {error})"
        ) from error
    return network


def _network(read: LinearResults, space: FeatureSpace) -> Network:
    network = _over_columns(read, space)
    if read.kind in ("log", "probit"):
        return with_inverse_link(network, "log" if read.kind == "log" else "probit")
    return network


def _over_columns(read: LinearResults, space: FeatureSpace) -> Network:
    """Return the linear predictor over encoded people."""
    sigmoid = read.kind == "logit"
    design = read.step
    if read.table is not None or not isinstance(design, NamedColumns):
        linear = Network.from_layers(
            [(read.parameters[None, :], [0.0])], source="float64", sigmoid=sigmoid
        )
        assert read.table is not None  # only encoded people have none
        return absorb(linear, design, space, read.table)
    slopes, bias = read.parameters, 0.0
    if design.constant is not None:
        bias = float(slopes[design.constant] * design.value)
        slopes = np.delete(slopes, design.constant)
    return Network.from_layers([(slopes[None, :], [bias])], source="float64", sigmoid=sigmoid)
