"""Check of a pipeline's encoders alone, for a model that is evaluated instead of read."""

from typing import Any

from feta.absorb.absorb import check_seen
from feta.absorb.evaluation import Evaluation
from feta.absorb.feature import raw_feature
from feta.absorb.walk import Walk
from feta.errors import FetaError, ValueMismatch
from feta.io.raw_table import TableMaker
from feta.space.feature_space import FeatureSpace


def check_encoders(
    preprocessing: Any,  # noqa: ANN401 - scikit-learn ships no types
    space: FeatureSpace,
    table: TableMaker,
) -> None:
    """Raise `ValueMismatch` if the schema allows sensitive values that no encoder ever saw.

    An encoder may ignore such values, so that all of them look alike to the model. Steps that
    cannot be read are no obstacle here; the encoders before them are checked.
    """
    evaluation, walk = Evaluation(space, preprocessing, table), Walk(space)
    try:
        raw = [raw_feature(space, name) for name in table.names]
        walk.visit(preprocessing, raw, table(evaluation.probes()), "preprocessing")
    except ValueMismatch:
        raise
    except (FetaError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError):
        pass  # the model itself is evaluated
    check_seen(evaluation.unseen(walk.encoder_inputs), space)
