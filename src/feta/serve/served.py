"""The model that is served: frozen, warmed up, and replaced as a whole."""

import hashlib
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from feta.arrays import Counts
from feta.errors import FetaError, NetworkError, SchemaError, Undecided
from feta.io.model_file import votes_of_bytes
from feta.io.regular_file import read_bytes
from feta.model import Model
from feta.predict.fair_predictor import FairPredictor
from feta.rule.protocol import Outcome
from feta.space.attribute import Derived
from feta.space.row_plan import RowPlan
from feta.space.sampling import draw_people

# The first decisions prepare tables; a request should not wait for them.
WARM_UP_PEOPLE = 64


@dataclass(frozen=True)
class Served:
    """One model file, opened; nothing in it changes."""

    name: str
    predictor: FairPredictor
    digest: str  # sha256 of the file
    content: bytes = field(repr=False)  # of the file
    loaded: float = field(default_factory=time.time)

    @classmethod
    def load(cls, path: Path, name: str) -> "Served":
        """Open a `.feta` file with its votes, and make first decisions."""
        if path.suffix.lower() != ".feta":
            raise SchemaError(
                f"{path}: not a .feta file: got {path.suffix or 'no suffix'!r}; expected a model "
                "with its schema and votes; write one with feta export MODEL --out model.feta"
            )
        try:
            return cls.read(read_bytes(path), name)  # once: it may be replaced at any time
        except FetaError as error:
            raise NetworkError(f"{path}: {error}") from None

    @classmethod
    def read(cls, content: bytes, name: str) -> "Served":
        """Read the content of a file, and make first decisions."""
        predictor = FairPredictor.voting(*votes_of_bytes(content))
        if predictor.model.relation.reads_sensitive:
            raise SchemaError(
                "decisions by [consequences] are not served: they need the sensitive columns, "
                "which the service never reads; expected another relation; use feta predict or "
                "FairPredictor"
            )
        served = cls(name, predictor, hashlib.sha256(content).hexdigest(), content)
        served.warm_up()
        return served

    @property
    def model(self) -> Model:
        """The model."""
        return self.predictor.model

    def warm_up(self) -> None:
        """Decide a few random people, so that all tables exist."""
        people = draw_people(self.model.space, np.random.default_rng(0), WARM_UP_PEOPLE)
        for rows in (people, people[:1]):
            with suppress(Undecided):  # a request about such a person is refused in words
                self.predictor.decide(rows)

    @cached_property
    def known(self) -> frozenset[str]:
        """The columns that a record may have; sensitive ones are ignored."""
        return frozenset(attribute.name for attribute in self.model.space.attributes)

    @cached_property
    def row_plan(self) -> RowPlan:
        """How usual records become rows; sensitive cells are not read."""
        return self.model.space.row_plan("ignore", "open")

    @cached_property
    def required(self) -> tuple[str, ...]:
        """The columns that a decision reads."""
        space = self.model.space
        return tuple(
            a.name
            for a in space.attributes
            if not (isinstance(a, Derived) or space.is_sensitive(a))
        )

    @cached_property
    def shared(self) -> Counts:
        """The encoded columns that a decision reads."""
        return np.flatnonzero(~self.model.space.sensitive_columns)

    def describe(self, outcome: Outcome) -> str | float:
        """Return the name of an outcome, or a score."""
        return self.model.describe(outcome)
