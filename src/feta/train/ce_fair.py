"""CEFairTrainer: training on everybody's worst counterexample (Algorithm 2), or on their span.

The counterexamples of a batch are found with the network as it stands, once: those added to the
batch are not searched again.
"""

import warnings
from dataclasses import KW_ONLY, asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from feta.arrays import Matrix
from feta.errors import EngineError, SchemaError, one_of
from feta.rule import Rule
from feta.scorer.network.network import Network
from feta.space.feature_space import FeatureSpace
from feta.train.checkpoint_file import Checkpoint
from feta.train.ensemble_stack import one_thread
from feta.train.fair_loop import FairLoop
from feta.train.plain import Progress, check_fraction, check_whole
from feta.train.run import SelectOn, TrainingRun
from feta.train.scaling import Scaling, unscaled
from feta.train.split import Split
from feta.train.subset import Subset
from feta.train.task import Task
from feta.train.worst_counterparts import Numbers

# What the paper does. The defaults differ where another choice left fewer counterexamples, or lost less
# accuracy, on German, Law School or UCI Adult.
PAPER: dict[str, object] = {
    "subset": "fresh",
    "label": "own",
    "sensitive_numbers": "real",
    "ce_weight": 1.0,
    "select_on": "train",
}

# With few people an epoch, small steps leave most counterexamples where they were (so on UCI Adult).
FEW = 0.1

# More than this share of equal decisions is called nearly constant.
NEARLY_ALL = 0.99

CHOICES = {
    "subset": ("fresh", "fixed"),
    "preset": (None, "paper"),
    "label": ("own", "decision"),
    "sensitive_numbers": ("real", "integer"),
    "select_on": ("validation", "train"),
    "engine": ("auto", "exhaustive"),
}


@dataclass(frozen=True)
class CEFairTrainer:
    """Trains a network further until fewer people have a counterexample.

    Parameters
    ----------
    space
        Who can exist, and what is sensitive.
    sample_fraction, subset
        The share of the people that an epoch goes over (ρ), drawn "fresh" each time or "fixed".
    standardize
        Center and scale numbers inside, by the people to learn from; the network returned takes
        people's own units, as the one given.
    preset
        "paper" overrides what the paper settles: fresh subsets, own labels, real numbers, equal
        weights, and the choice of the epoch on training people. Its 50 epochs are the default.
    keep
        Who is trained on besides the counterexamples: "all" of a batch, only people who have
        "counterexamples", or these and a share of the others.
    label
        A counterexample is trained towards its person's "own" label, or the network's "decision" for them.
    sensitive_numbers
        Search whole-number attributes over the "real" numbers of their range, or over "integer" ones.
    ce_weight
        The weight of a counterexample's loss; a person's is 1.
    span_penalty
        Instead of adding counterexamples, add this times (highest − lowest score of the counterparts).
    select_on
        Choose the epoch on "validation" people or on the "train" people of each epoch.
    learning_rate
        None takes 0.01 where an epoch has at most a tenth of the people, else 0.001.
    engine
        What searches the counterparts: the compiled kernel where it can ("auto"), or "exhaustive".
    rule
        What is learned: None is a threshold at 0 for one score and `Argmax` for several; a
        `Tolerance` trains a regression.

    Examples
    --------
    >>> import feta
    >>> space = feta.FeatureSpace((feta.Integer("age", 18, 90, sensitive=True), feta.Real("income", 0, 9)))
    >>> people = space.encode([{"age": 20 + n, "income": n % 10} for n in range(60)])
    >>> unfair = feta.Network.from_layers([([[0.1, 0.5]], [-7.0])])
    >>> trainer = CEFairTrainer(space, learning_rate=0.2, batch_size=10, epochs=20)
    >>> run = trainer.train(unfair, people, people[:, 1] > 4)
    >>> run.start.ce_rate, run.best.chosen_by.ce_rate
    (1.0, 0.0)
    """

    space: FeatureSpace
    _: KW_ONLY
    sample_fraction: float = 1.0
    subset: Subset = "fresh"
    standardize: bool = True
    preset: Literal["paper"] | None = None
    keep: Literal["all", "counterexamples"] | float = "all"
    label: Literal["own", "decision"] = "own"
    sensitive_numbers: Numbers = "real"
    ce_weight: float = 1.0
    span_penalty: float | None = None
    select_on: SelectOn = "validation"
    learning_rate: float | None = None
    batch_size: int = 128
    epochs: int = 50
    engine: Literal["auto", "exhaustive"] = "auto"
    rule: Rule | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                error = EngineError if name == "engine" else SchemaError
                raise error(f"{name} must be {one_of(getattr(self, name), known)}")
        for name, value in PAPER.items() if self.preset == "paper" else ():
            object.__setattr__(self, name, value)
        check_fraction("sample_fraction", self.sample_fraction)
        for name in ("batch_size", "epochs"):
            check_whole(name, getattr(self, name))
        if self.keep not in ("all", "counterexamples"):
            given: object = self.keep
            if not isinstance(given, int | float) or not 0 <= given <= 1:
                message = (
                    f"keep must be 'all', 'counterexamples' or a share from 0 to 1, got {given!r}"
                )
                raise SchemaError(message)
        for name in ("learning_rate", "ce_weight", "span_penalty"):
            number = getattr(self, name)
            if number is not None and not (isinstance(number, int | float) and 0 < number < np.inf):
                raise SchemaError(f"{name} must be a number above 0, got {number!r}")

    @property
    def rate(self) -> float:
        """The learning rate, given or recommended."""
        if self.learning_rate is not None:
            return self.learning_rate
        return 1e-2 if self.sample_fraction <= FEW else 1e-3

    @property
    def kept_share(self) -> float:
        """The share of people without a counterexample who are trained on."""
        return {"all": 1.0, "counterexamples": 0.0}.get(str(self.keep), self.keep)  # type: ignore[arg-type]  # a number then

    def train(
        self,
        network: Network,
        people: Matrix,
        labels: ArrayLike,
        *,
        validation: tuple[Matrix, ArrayLike] | None = None,
        checkpoint: str | Path | None = None,
        progress: Progress | None = None,
    ) -> TrainingRun:
        """Train a network further on some people; best start from one with the least validation loss.

        Parameters
        ----------
        network
            In people's own units, as `read_torch`, `PlainTrainer` or an earlier run gives it.
        people, labels
            Rows of the space, and for each: favorable or not, the class's number, or the right score.
        validation
            People and labels to choose the epoch by; None holds out a tenth, drawn by the seed.
        checkpoint
            A file that keeps where the training stands; if it is there, the training goes on from it.
        progress
            Called with the share of the epochs that are done.
        """
        task = Task.of(self.rule, network.outputs)
        if self.span_penalty is not None and network.outputs != 1:
            raise SchemaError(
                f"a span is one of one score, but the network gives {network.outputs}"
            )
        split = Split.of(self.space, task, people, labels, validation=validation, seed=self.seed)
        settings = asdict(self) | {
            "space": self.space.fingerprint,
            "network": network.fingerprint,
        }
        file = Checkpoint(checkpoint, settings, split.people, split.targets, split.held)
        with one_thread():
            run = FairLoop(self, task, network, split).run(file, progress)
        self._warn(run, split)
        return run

    def scaling(self, people: Matrix) -> Scaling:
        """Scale numbers by the people to learn from."""
        return Scaling.of(self.space, people) if self.standardize else Scaling.none(self.space)

    def _warn(self, run: TrainingRun, split: Split) -> None:
        alike = min(run.best.chosen_by.largest_class, run.best.met.largest_class)
        if alike > NEARLY_ALL:
            message = f"the network chosen decides {alike:.1%} of people alike: it may be fair because it is nearly constant"
            warnings.warn(message, stacklevel=3)
        far = [] if self.standardize else unscaled(self.space, split.people)
        if far:
            names = ", ".join(map(repr, far))
            message = f"far from 0 for their spread, so that networks learn little from them: {names}; use standardize=True"
            warnings.warn(message, stacklevel=3)
