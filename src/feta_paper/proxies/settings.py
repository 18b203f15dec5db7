"""All settings of `feta reproduce proxies`, fixed before its first run; a run stores their digest.

Seeds begin at 1000, which no experiment before has used.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, replace

from feta.train.chooser import SPAN
from feta.vote.settings import LEAST


@dataclass(frozen=True)
class NetworkTraining:
    """How plain and blind networks are trained; the best validation epoch is taken."""

    name: str
    epochs: int
    weight_decay: float = 0.0
    sensitive_scale: float = 1.0
    learning_rates: tuple[float, ...] = (1e-3,)
    batch_size: int = 128
    hidden: tuple[int, ...] = (16, 16)


@dataclass(frozen=True)
class FairTraining:
    """How CE-Fair and span training continue a plain network."""

    epochs: int
    sample_fraction: float = 1.0
    span_penalty: float = SPAN


@dataclass(frozen=True)
class RealPeople:
    """A data set, its group of interest, and how much is run on it."""

    name: str
    dataset: str
    attribute: str  # the gap is the rate of its `members` minus the rate of everybody else
    members: tuple[str, ...]
    seeds: tuple[int, ...]
    training: NetworkTraining
    fair: FairTraining
    sensitive: tuple[str, ...] = ()  # none: those of the data set
    fair_folds: int = 5  # folds of each seed with CE-Fair and span training
    max_tested: int | None = None  # test people per fold
    weight: float = 1.0  # estimated seconds per fold


@dataclass(frozen=True)
class MeritSettings:
    """The real columns of semi-synthetic people, and how their odds are fitted."""

    dataset: str
    training: NetworkTraining
    n_fitted: int = 12_000  # people
    limit: float = 4.0  # the largest odds; larger ones would make labels certain
    intercept: float = 1.0  # added to the odds, so that about half of the labels are favorable
    rows: int | None = None


@dataclass(frozen=True)
class ProxySettings:
    """Everything that the results depend on, apart from the data."""

    merits: MeritSettings
    trainings: tuple[NetworkTraining, ...]
    correlations: tuple[float, ...]
    seeds: tuple[int, ...]
    n_people: int
    fair: FairTraining
    real: tuple[RealPeople, ...]
    folds: int = 5
    scale: float = 4.0  # of the sensitive columns, for the arm "soft vote, scaled"
    distil_epochs: int | None = None
    least: int = LEAST  # the fewest people of a combination with its own vote weight
    n_scored: int = 2000  # test people per fold on whom the slope is measured
    rows: int | None = None  # of each data set
    quick: bool = False

    @property
    def digest(self) -> str:
        """A checksum of all settings."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


FIRST_SEED = 1000
WIDE = (16, 16, 16)


def _seeds(number: int) -> tuple[int, ...]:
    return tuple(range(FIRST_SEED, FIRST_SEED + number))


_ADULT = NetworkTraining("adult", 20, learning_rates=(3e-3,), batch_size=256, hidden=WIDE)

_MERITS = NetworkTraining("merits", 12, learning_rates=(1e-2,))

FULL = ProxySettings(
    merits=MeritSettings("law", _MERITS),
    trainings=(
        NetworkTraining("short", 15),
        NetworkTraining("long", 120),
        NetworkTraining("regularized", 120, weight_decay=0.01),
        NetworkTraining("scaled", 15, sensitive_scale=4.0),
    ),
    correlations=(0.3, 0.6, 0.9),
    seeds=_seeds(10),
    n_people=6000,
    fair=FairTraining(20),
    real=(
        RealPeople(
            "german",
            "german",
            "personal_status",
            ("female, divorced, separated or married",),
            _seeds(10),
            NetworkTraining("german", 200, learning_rates=(1e-2, 1e-3), batch_size=64, hidden=WIDE),
            FairTraining(30),
            weight=20,
        ),
        RealPeople(
            "law",
            "law",
            "race",
            ("Black", "Hispanic"),
            _seeds(3),
            NetworkTraining("law", 40, learning_rates=(1e-2,), batch_size=256, hidden=WIDE),
            FairTraining(15, sample_fraction=0.3),
            weight=120,
        ),
        RealPeople(
            "adult, sex",
            "adult",
            "sex",
            ("Female",),
            _seeds(3),
            _ADULT,
            FairTraining(12, sample_fraction=0.3),
            sensitive=("sex",),
            weight=120,
        ),
        RealPeople(
            "adult",
            "adult",
            "sex",
            ("Female",),
            _seeds(1),
            _ADULT,
            FairTraining(8, sample_fraction=0.02),
            fair_folds=2,
            max_tested=3000,
            weight=300,
        ),
    ),
)


def _quick_people(people: RealPeople) -> RealPeople:
    return replace(
        people,
        seeds=people.seeds[:1],
        training=replace(people.training, epochs=2),
        fair=replace(people.fair, epochs=1, sample_fraction=0.1),
        fair_folds=1,
        max_tested=40,
        weight=1.0,
    )


# Everything runs once; the figures mean nothing.
QUICK = replace(
    FULL,
    merits=replace(FULL.merits, training=replace(_MERITS, epochs=2), n_fitted=300, rows=800),
    trainings=tuple(replace(training, epochs=2) for training in FULL.trainings),
    seeds=FULL.seeds[:2],
    correlations=FULL.correlations[-1:],
    n_people=400,
    fair=FairTraining(1),
    real=tuple(_quick_people(people) for people in FULL.real),
    folds=2,
    distil_epochs=2,
    least=1,  # in few rows, no combination has five people
    n_scored=40,
    rows=600,
    quick=True,
)
