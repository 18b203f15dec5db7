"""Protocol: what the paper's appendix says was done on a data set, and where FETA's own arms differ."""

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Literal

from feta.errors import SchemaError, one_of
from feta.train.chooser import SPAN

# Folds that people are cut into; fewer may be carried out.
FOLDS = 5


Keep = Literal["all", "counterexamples"]
BATCHES: dict[Keep, str] = {"all": "all people", "counterexamples": "people with counterexamples"}


@dataclass(frozen=True)
class Protocol:
    """One data set's settings; `rows` and `quick` are what a look in a minute changes."""

    dataset: str
    learning_rates: tuple[float, ...] = (1e-2, 1e-3, 1e-4)
    batch_sizes: tuple[int, ...] = (64, 128)
    epochs: int = 500
    epoch: Literal["best", "last"] = "best"
    fair_epochs: int = 50
    rho: float = 1.0  # of the people to learn from, each epoch of CE-Fair training
    keep: Keep = "all"
    test_share: float = 1.0  # of the test fold, in the paper; ours is the full fold besides
    own_share: float = 1.0  # ρ of FETA's own settings: as large as time allows
    own_epochs: int = 50
    lcifr_epochs: int = 100
    encoder: tuple[int, ...] = (20, 20)
    authors_gamma: float = 10.0  # LCIFR's authors'; the paper has 1 everywhere
    certified: int | None = None  # people of a fold certified over all counterparts; None: all
    patience: float = 20.0  # seconds that a solver may count for one person
    numbers: bool = True  # some sensitive attribute is a number, not a category
    raw: bool = False  # everything once more on unscaled inputs
    quick: bool = False
    rows: int | None = None

    @property
    def other_keep(self) -> Keep:
        """The kind of batch that the paper did not choose on this data set."""
        return "counterexamples" if self.keep == "all" else "all"

    @property
    def digest(self) -> str:
        """A checksum of all settings."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]

    def settings(self) -> dict[str, str]:
        """Say in words what is carried out."""
        told = {
            "folds": f"{FOLDS} of 80/20, not stratified; a tenth of each training part held out",
            "network": "3 hidden layers of 16, ReLU, torch's initialization, Adam without weight decay",
            "inputs": "numbers standardized on the people to learn from, categories 0 or 1"
            + ("; everything marked raw: numbers as they are" if self.raw else ""),
            "nn_b": f"learning rates {_list(self.learning_rates)}, batch sizes {_list(self.batch_sizes)}, {self.epochs} epochs, {self._chosen}",
            "trained": f"{self.fair_epochs} epochs, rho {self.rho:.0%} drawn afresh each epoch, batch of {BATCHES[self.keep]} and the counterexamples; epoch nearest to (1, 0) on training people",
            "other_batch": f"the same, batch of {BATCHES[self.other_keep]} and the counterexamples",
            "default": f"CEFairTrainer as it comes, {self.own_epochs} epochs over {self.own_share:.0%} of the people each, from the best-validation network",
            "span": f"the same with a span penalty of {SPAN} instead of counterexamples, {self.own_epochs} epochs",
            "blind": f"full: the grid of NN_b, best validation loss; fixed and fresh: {self.fair_epochs} epochs on {self.rho:.0%} of the people, NN_b's rates, last epoch",
            "lcifr": f"gamma 1, categorical attributes varied in training, encoder {_list(self.encoder)}, {self.lcifr_epochs} epochs",
            "lcifr_original": f"gamma {self.authors_gamma:g}, categorical attributes varied in training, encoder {_list(self.encoder)}, {self.lcifr_epochs} epochs",
            "test": "full test folds",
        }
        if self.numbers:
            told["lcifr_all"] = "as lcifr, with all sensitive attributes varied"
        if self.test_share < 1:
            told["test"] += f"; sample: {self.test_share:.0%} of each, as in the paper"
        return told

    @property
    def _chosen(self) -> str:
        return "best validation loss" if self.epoch == "best" else "last epoch"

    def notes(self) -> list[str]:
        """Say what is not as in the paper."""
        told = []
        if self.quick:
            most = "" if self.rows is None else f", {self.rows:,} rows at most"
            told.append(
                f"A quick run: {self.epochs} epochs{most}; its figures show that all runs, nothing else."
            )
        if self.certified is not None:
            told.append(
                f"LCIFR's certificates over all counterparts were computed for the first {self.certified:,} people of a fold."
            )
        return told


PROTOCOLS = {
    "german": Protocol("german"),
    "adult": Protocol(
        "adult", rho=0.01, keep="counterexamples", test_share=0.01, own_share=0.1, certified=50
    ),
    "law": Protocol(
        "law",
        learning_rates=(1e-2,),
        batch_sizes=(256,),
        epochs=100,
        epoch="last",
        rho=0.02,
        keep="counterexamples",
        encoder=(20,),  # with no activation: linear from end to end, as its authors have it
        authors_gamma=0.1,
        numbers=False,
        raw=True,
    ),
}
PROTOCOLS["ipums"] = replace(PROTOCOLS["adult"], dataset="ipums")


def protocol_of(dataset: str, *, quick: bool = False) -> Protocol:
    """Give a data set's protocol; a quick one has few rows and epochs."""
    if dataset not in PROTOCOLS:
        raise SchemaError(f"a data set to reproduce must be {one_of(dataset, PROTOCOLS)}")
    found = PROTOCOLS[dataset]
    if not quick:
        return found
    return replace(
        found,
        epochs=10,
        fair_epochs=5,
        own_epochs=5,
        lcifr_epochs=5,
        certified=5,
        patience=2.0,
        rho=max(found.rho, 0.1),
        test_share=max(found.test_share, 0.1),
        quick=True,
        rows=2000,
    )


def _list(numbers: tuple[float, ...] | tuple[int, ...]) -> str:
    return ", ".join(f"{one:g}" for one in numbers)
