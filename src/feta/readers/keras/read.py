"""Reader of saved Keras models, from the file alone; Keras itself is not needed."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from feta.errors import NetworkError
from feta.readers.keras.branches import BranchReader
from feta.readers.keras.chain import LayerReader
from feta.readers.keras.evaluation import KerasEvaluator
from feta.readers.keras.file import DESCRIPTION_ERRORS, KerasModel, load_keras
from feta.readers.keras.hdf5 import damage_error
from feta.scorer.network.agreement import check_agreement
from feta.scorer.network.branches import BranchesError
from feta.scorer.network.network import Network

# Rows on which both are scored: enough to reach both sides of every neuron.
CHECKED_ROWS = 256

# Standard deviations of these rows: scaled inputs, years, amounts. The largest reveals clipping.
SCALES = (1.0, 10.0, 1e3)


def read_keras(path: str | Path) -> Network:
    """Read a network from a .keras or .h5 file that Keras saved.

    Sequential and functional models are read: Dense layers with activations, batch norm,
    Normalization and Rescaling; Add, Subtract and Concatenate of several layers; Embedding of the
    inputs, which the network reads as one row in the model's order. A last sigmoid or softmax
    is removed: scores are its inputs. The network's scores are compared with those of the layers,
    evaluated one by one. A custom class is rejected, except in an .h5 file under the name of one of
    Keras's classes: such a file does not show the difference.
    """
    try:
        with np.errstate(all="ignore"):
            model = load_keras(Path(path))
            reader = LayerReader(model)
            try:
                network = reader.network()
            except BranchesError:
                reader = BranchReader(model)
                network = reader.network()
            _compare_scores(network, model, reader)
            return network
    except NetworkError as error:
        raise NetworkError(f"{path}: {error}") from None
    except DESCRIPTION_ERRORS as error:
        raise NetworkError(f"{path}: {damage_error(type(error).__name__)}") from None


def _compare_scores(network: Network, model: KerasModel, reader: LayerReader) -> None:
    squash, last = reader.squash, reader.squashed_by if reader.squash else ""
    what, rng = "the layers' own", np.random.default_rng(0)
    in_double = replace(network, source="float64")
    for scale in SCALES:
        rows = scale * rng.normal(size=(CHECKED_ROWS, network.width))
        for table in network.first.tables:
            rows[:, table.column] = rng.choice(table.numbers, CHECKED_ROWS)
        if scale == 1:
            check_agreement(network, rows, KerasEvaluator(model)(rows), what, squash=squash)
        # A sigmoid hides large differences. At large scales, terms that cancel in an inner layer
        # may cause larger rounding errors than the last layer's terms show.
        scores = KerasEvaluator(model, skipped=last)(rows)
        check_agreement(in_double, rows, scores, what, rounded=scale > 1)
