"""Fair decisions about Arrow batches: one callable for Dask, Ray, Spark, Polars and DuckDB."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from feta.distributed.arrow_columns import check_kept, outcome_array, with_columns
from feta.distributed.model_file import ModelFile
from feta.model import Model
from feta.predict.fair_predictor import FairPredictor

ADDED = ("decision",)


class FairBatches:
    """A callable from an Arrow batch, or table, of people to one with their fair decisions.

    It can be pickled. Sensitive columns are not read and may be absent. Decisions depend on the
    person alone, not on the batch, so a part that is computed twice is the same.

    Parameters
    ----------
    source
        A model, a predictor with its votes, or the path of a `.feta` file. Of a path, only the name
        and the digest are sent: all processes must see the same file.
    keep
        Columns of the input that the output has as well, such as an id.

    Raises
    ------
    DomainError
        If a row is invalid; it names the column and the row of the batch.
    Undecided
        If a person cannot be decided.

    Examples
    --------
    >>> import feta, pyarrow as pa
    >>> age = feta.Integer("age", 18, 90, sensitive=True)
    >>> space = feta.FeatureSpace((age, feta.Real("income", 0, 9)))
    >>> network = feta.Network.from_layers([([[0.1, 1.0]], [-12.0])])
    >>> decide = feta.FairBatches(feta.Model(space, network), keep=["id"])
    >>> decide(pa.table({"id": [7, 8], "income": [2.5, 8.5]})).to_pylist()
    [{'id': 7, 'decision': 'unfavorable'}, {'id': 8, 'decision': 'favorable'}]
    """

    def __init__(
        self, source: Model | FairPredictor | str | Path, *, keep: Sequence[str] = ()
    ) -> None:
        self.keep = check_kept(keep, ADDED)
        self._source: FairPredictor | ModelFile
        if isinstance(source, str | Path):
            self._source = ModelFile.of(source)
            self._source.load()  # raises here for a damaged file, not in a worker
        else:
            self._source = FairPredictor(source) if isinstance(source, Model) else source

    def __getstate__(self) -> dict[str, object]:
        """Leave out the predictor of a file, which every process makes for itself."""
        return {name: value for name, value in self.__dict__.items() if name != "_predictor"}

    @cached_property
    def _predictor(self) -> FairPredictor:
        if isinstance(self._source, ModelFile):
            return FairPredictor.voting(*self._source.load())
        return self._source

    def __call__(self, batch: Any) -> Any:  # noqa: ANN401 - pyarrow ships no types
        """Return the kept columns and the column `decision`."""
        predictor = self._predictor
        people = predictor.model.space.encode(batch, sensitive=predictor.sensitive, limits="open")
        decisions = outcome_array(predictor.model, predictor.decide(people))
        return with_columns(batch, self.keep, {"decision": decisions})
