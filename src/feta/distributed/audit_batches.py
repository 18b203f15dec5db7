"""Audits of Arrow batches: one callable for Dask, Ray, Spark, Polars and DuckDB."""

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from feta.auditing.auditor import Auditor
from feta.auditing.finding import Finding
from feta.auditing.record import record_of
from feta.distributed.arrow_columns import arrow, check_kept, with_columns
from feta.distributed.model_file import ModelFile
from feta.model import Model
from feta.scorer.protocol import has_scores

ADDED = (
    "status",
    "decision",
    "fair_decision",
    "gap",
    "counterpart",
    "alone",
    "runtime",
    "reason",
    "provenance",
)


class AuditBatches:
    """A callable from an Arrow batch, or table, of people to one with what was found about them.

    It can be pickled. `status` is "fair", "unfair" or "undecided". `counterpart` has the sensitive
    values of the worst counterpart as JSON, and `alone` the attributes of which each is enough by
    itself, as JSON. For a regression, `counterpart` has the sensitive values of both people of the
    pair, the lower score first. `reason` states why a person is undecided. Pairs are not replayed
    in the user's own runtime: use `feta.audit` or the command line on a part of the table for that.

    Parameters
    ----------
    source
        A model, or the path of a `.feta` file, whose stored votes give the fair decisions. Of a
        path, only the name and the digest are sent: all processes must see the same file.
    keep
        Columns of the input that the output has as well, such as an id.
    engine
        The engine that answers.

    Raises
    ------
    DomainError
        If a row is invalid; it names the column and the row of the batch.

    Examples
    --------
    >>> import feta, pyarrow as pa
    >>> age = feta.Integer("age", 18, 90, sensitive=True)
    >>> space = feta.FeatureSpace((age, feta.Real("income", 0, 9)))
    >>> network = feta.Network.from_layers([([[0.1, 1.0]], [-12.0])])
    >>> examine = feta.AuditBatches(feta.Model(space, network), keep=["id"])
    >>> found = examine(pa.table({"id": [7, 8], "age": [18, 20], "income": [2.5, 8.5]}))
    >>> found.select(["id", "status", "counterpart"]).to_pylist()
    [{'id': 7, 'status': 'fair', 'counterpart': None},
     {'id': 8, 'status': 'unfair', 'counterpart': '{"age": 90}'}]
    """

    def __init__(
        self, source: Model | str | Path, *, keep: Sequence[str] = (), engine: str = "auto"
    ) -> None:
        self.keep, self.engine = check_kept(keep, ADDED), engine
        self._source: Model | ModelFile
        if isinstance(source, str | Path):
            self._source = ModelFile.of(source)
            self._source.load()  # raises here for a damaged file, not in a worker
        else:
            self._source = source

    def __getstate__(self) -> dict[str, object]:
        """Leave out the auditor, which every process makes for itself."""
        return {name: value for name, value in self.__dict__.items() if name != "_auditor"}

    @cached_property
    def _auditor(self) -> Auditor:
        if isinstance(self._source, ModelFile):
            model, votes = self._source.load()
            plain = votes.vote == "majority" and votes.weights is None
            return Auditor(model, self.engine, votes=None if plain else votes)
        return Auditor(self._source, self.engine)

    def __call__(self, batch: Any) -> Any:  # noqa: ANN401 - pyarrow ships no types
        """Return the kept columns and the columns of the findings."""
        people = self._auditor.model.space.encode(batch, limits="open")
        self._auditor.admit(people)
        return with_columns(batch, self.keep, self._columns(self._auditor.audit(people)))

    def _columns(self, findings: Sequence[Finding]) -> dict[str, Any]:
        pa, model = arrow(), self._auditor.model
        rows = [self._row(finding) for finding in findings]
        kinds = dict.fromkeys(ADDED, pa.string()) | {"gap": pa.float64()}
        if model.rule.tolerance is not None:
            kinds |= {"decision": pa.float64(), "fair_decision": pa.float64()}
        return {name: pa.array([row[name] for row in rows], type=kinds[name]) for name in ADDED}

    def _row(self, finding: Finding) -> dict[str, object]:
        model, pair = self._auditor.model, finding.pair
        return {
            "status": finding.status,
            "decision": _named(model, finding.decision),
            "fair_decision": _named(model, finding.fair_decision),
            "gap": None if pair is None or not has_scores(model.scorer) else pair.gap,
            "counterpart": None if pair is None else self._counterpart(finding),
            "alone": None if pair is None else json.dumps(list(finding.alone)),
            "runtime": finding.runtime,
            "reason": finding.reason or None,
            "provenance": None if finding.verdict is None else finding.verdict.provenance,
        }

    def _counterpart(self, finding: Finding) -> str:
        pair, space = finding.pair, self._auditor.model.space
        assert pair is not None  # only people with a pair have a counterpart
        people = [pair.counterpart]
        if self._auditor.model.rule.tolerance is not None:
            people = [pair.person, pair.counterpart]
        records = [record_of(space, person, space.sensitive) for person in people]
        return json.dumps(records[0] if len(records) == 1 else records)


def _named(model: Model, outcome: Any) -> str | float | None:  # noqa: ANN401 - a decision or score
    return None if outcome is None else model.describe(outcome)
