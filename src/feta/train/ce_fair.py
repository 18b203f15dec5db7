"""Training on everybody's worst counterexample (Algorithm 2), or on the span of scores.

The counterexamples of a batch are found once, with the current network: added counterexamples
are not searched themselves.
"""

import warnings
from dataclasses import KW_ONLY, asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from feta.arrays import Matrix
from feta.errors import EngineError, SchemaError, unknown_choice
from feta.rule import Rule
from feta.scorer.network.network import Network
from feta.space.feature_space import FeatureSpace
from feta.train.checkpoint_file import Checkpoint
from feta.train.ensemble_stack import one_thread
from feta.train.fair_loop import FairLoop
from feta.train.plain import Progress, check_fraction, check_positive_integer
from feta.train.run import SelectOn, TrainingRun
from feta.train.scaling import Scaling, unscaled
from feta.train.split import Split, Subset
from feta.train.task import Task
from feta.train.worst_counterparts import Numbers

# The settings of the paper. The defaults differ if another choice left fewer counterexamples, or
# lost less accuracy, on German, Law School or UCI Adult.
PAPER: dict[str, object] = {
    "subset": "fresh",
    "label": "own",
    "sensitive_numbers": "real",
    "ce_weight": 1.0,
    "select_on": "train",
}

# With so few people per epoch, small steps remove few counterexamples (measured on UCI Adult).
SMALL_FRACTION = 0.1

# A network with a larger share of equal decisions is called nearly constant.
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
    """Trainer that continues a training until fewer people have a counterexample.

    Parameters
    ----------
    space
        The attributes of people, and which are sensitive.
    sample_fraction, subset
        The fraction of the people per epoch (ρ), drawn "fresh" each time or "fixed".
    standardize
        Center and scale numbers internally, by the training people; the returned network takes
        raw units, like the given one.
    preset
        "paper" overrides the settings that the paper states: fresh subsets, own labels, real
        numbers, equal weights, and selection on training people. Its 50 epochs are the default.
    keep
        Who is trained on in addition to the counterexamples: "all" people of a batch, only
        people who have "counterexamples", or these and a fraction of the others.
    label
        The label of a counterexample: its person's "own" label, or the network's "decision" for
        that person.
    sensitive_numbers
        Search integer attributes over the "real" numbers of their range, or over "integer" ones.
    ce_weight
        The weight of a counterexample's loss; a person's is 1.
    span_penalty
        Instead of adding counterexamples, add this times the span (highest − lowest score of the
        counterparts) to the loss.
    select_on
        Choose the epoch on "validation" people or on the "train" people of each epoch.
    learning_rate
        None selects 0.01 if an epoch has at most a tenth of the people, otherwise 0.001.
    engine
        How counterparts are searched: by the compiled kernel if possible ("auto"), or by
        enumeration ("exhaustive").
    rule
        The decision rule to learn: None is a threshold at 0 for one score and `Argmax` for
        several; a `Tolerance` trains a regression.

    Examples
    --------
    >>> import feta
    >>> age = feta.Integer("age", 18, 90, sensitive=True)
    >>> space = feta.FeatureSpace((age, feta.Real("income", 0, 9)))
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
                raise error(f"invalid {name}: {unknown_choice(getattr(self, name), known)}")
        for name, value in PAPER.items() if self.preset == "paper" else ():
            object.__setattr__(self, name, value)
        check_fraction("sample_fraction", self.sample_fraction)
        for name in ("batch_size", "epochs"):
            check_positive_integer(name, getattr(self, name))
        if self.keep not in ("all", "counterexamples"):
            keep: object = self.keep
            if not isinstance(keep, int | float) or not 0 <= keep <= 1:
                raise SchemaError(
                    f"invalid keep: got {keep!r}; "
                    "expected 'all', 'counterexamples' or a fraction from 0 to 1"
                )
        for name in ("learning_rate", "ce_weight", "span_penalty"):
            number = getattr(self, name)
            if number is not None and not (isinstance(number, int | float) and 0 < number < np.inf):
                raise SchemaError(f"invalid {name}: got {number!r}; expected a number above 0")

    @property
    def rate(self) -> float:
        """The learning rate: the given or the recommended one."""
        if self.learning_rate is not None:
            return self.learning_rate
        return 1e-2 if self.sample_fraction <= SMALL_FRACTION else 1e-3

    @property
    def kept_share(self) -> float:
        """The fraction of people without a counterexample who are trained on."""
        return {"all": 1.0, "counterexamples": 0.0}.get(str(self.keep), self.keep)  # type: ignore[arg-type]  # otherwise a number

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
        """Continue the training of a network; start from one with a low validation loss.

        Parameters
        ----------
        network
            In raw units, as `read_torch`, `PlainTrainer` or an earlier run returns it.
        people, labels
            Rows of the space, and one label per row: favorable or not, the index of the class,
            or the correct score.
        validation
            People and labels for the selection of the epoch; None holds out a random tenth.
        checkpoint
            A file that stores the state of the training; an existing file is resumed.
        progress
            Called with the fraction of finished epochs.
        """
        task = Task.of(self.rule, network.outputs)
        if self.span_penalty is not None and network.outputs != 1:
            raise SchemaError(
                f"a span penalty needs one score: got {network.outputs} outputs; "
                "train without span_penalty"
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
        """Return the scaling of the training people."""
        return Scaling.of(self.space, people) if self.standardize else Scaling.none(self.space)

    def _warn(self, run: TrainingRun, split: Split) -> None:
        share = min(run.best.chosen_by.largest_class, run.best.met.largest_class)
        if share > NEARLY_ALL:
            message = (
                f"{share:.1%} of people get the same decision from the chosen network: "
                "it may be fair because it is nearly constant"
            )
            warnings.warn(message, stacklevel=3)
        far = [] if self.standardize else unscaled(self.space, split.people)
        if far:
            names = ", ".join(map(repr, far))
            message = (
                "networks learn little from columns whose values are far from 0 compared with "
                f"their spread: {names}; use standardize=True"
            )
            warnings.warn(message, stacklevel=3)
