"""The protocol of the paper's appendix for each data set, and where FETA's training differs."""

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Literal

from feta.errors import SchemaError, unknown_choice
from feta.train.chooser import SPAN

# Number of folds that the people are split into; a run may use fewer of them.
FOLDS = 5


Keep = Literal["all", "counterexamples"]
BATCHES: dict[Keep, str] = {"all": "all people", "counterexamples": "people with counterexamples"}


@dataclass(frozen=True)
class Protocol:
    """The settings of one data set; a quick run changes `rows` and `quick`, among others."""

    dataset: str
    learning_rates: tuple[float, ...] = (1e-2, 1e-3, 1e-4)
    batch_sizes: tuple[int, ...] = (64, 128)
    epochs: int = 500
    epoch: Literal["best", "last"] = "best"
    fair_epochs: int = 50
    rho: float = 1.0  # share of the training people in each epoch of CE-Fair training
    keep: Keep = "all"
    test_share: float = 1.0  # share of the test fold in the paper; ours is always the full fold
    own_share: float = 1.0  # ρ of FETA's training: as large as time allows
    own_epochs: int = 50
    lcifr_epochs: int = 100
    encoder: tuple[int, ...] = (20, 20)
    authors_gamma: float = 10.0  # of LCIFR's authors; the paper always has 1
    certified: int | None = None  # people per fold certified over all counterparts; None: all
    patience: float = 20.0  # time limit of a solver per person, in seconds
    numbers: bool = True  # whether a sensitive attribute is a number, not a category
    raw: bool = False  # whether to repeat steps on unscaled inputs
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
        """Describe the protocol in words, by arm."""
        encoder = f"encoder {_list(self.encoder)}, {self.lcifr_epochs} epochs"
        settings = {
            "folds": f"{FOLDS} of 80/20, not stratified; a tenth of each training part held out",
            "network": "3 hidden layers of 16, ReLU, torch's initialization, "
            "Adam without weight decay",
            "inputs": "numbers standardized on the training people, categories 0 or 1"
            + ("; everything marked raw: numbers not standardized" if self.raw else ""),
            "nn_b": f"learning rates {_list(self.learning_rates)}, "
            f"batch sizes {_list(self.batch_sizes)}, {self.epochs} epochs, {self._selection}",
            "trained": f"{self.fair_epochs} epochs, rho {self.rho:.0%} drawn anew for each epoch, "
            f"batch of {BATCHES[self.keep]} and the counterexamples; "
            "epoch nearest to (1, 0) on training people",
            "other_batch": f"the same, batch of {BATCHES[self.other_keep]} and the counterexamples",
            "default": f"CEFairTrainer with its defaults, {self.own_epochs} epochs over "
            f"{self.own_share:.0%} of the people each, from the best-validation network",
            "span": f"the same with a span penalty of {SPAN} instead of counterexamples, "
            f"{self.own_epochs} epochs",
            "blind": "full: the grid of NN_b, best validation loss; fixed and fresh: "
            f"{self.fair_epochs} epochs on {self.rho:.0%} of the people, NN_b's rates, last epoch",
            "lcifr": f"gamma 1, categorical attributes varied in training, {encoder}",
            "lcifr_original": f"gamma {self.authors_gamma:g}, "
            f"categorical attributes varied in training, {encoder}",
            "test": "full test folds",
        }
        if self.numbers:
            settings["lcifr_all"] = "as lcifr, with all sensitive attributes varied"
        if self.test_share < 1:
            settings["test"] += f"; sample: {self.test_share:.0%} of each, as in the paper"
        return settings

    @property
    def _selection(self) -> str:
        return "best validation loss" if self.epoch == "best" else "last epoch"

    def notes(self) -> list[str]:
        """Describe where a run differs from the paper."""
        notes = []
        if self.quick:
            limit = "" if self.rows is None else f", at most {self.rows:,} rows"
            notes.append(
                f"A quick run: {self.epochs} epochs{limit}. "
                "Its figures only show that every step runs."
            )
        if self.certified is not None:
            notes.append(
                "LCIFR's certificates over all counterparts were computed "
                f"for the first {self.certified:,} people of a fold."
            )
        return notes


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
        encoder=(20,),  # without an activation, so the network is linear, as its authors have it
        authors_gamma=0.1,
        numbers=False,
        raw=True,
    ),
}
PROTOCOLS["ipums"] = replace(PROTOCOLS["adult"], dataset="ipums")


def protocol_of(dataset: str, *, quick: bool = False) -> Protocol:
    """Return the protocol of a data set; a quick one has few rows and epochs."""
    if dataset not in PROTOCOLS:
        raise SchemaError(f"unknown data set to reproduce: {unknown_choice(dataset, PROTOCOLS)}")
    protocol = PROTOCOLS[dataset]
    if not quick:
        return protocol
    return replace(
        protocol,
        epochs=10,
        fair_epochs=5,
        own_epochs=5,
        lcifr_epochs=5,
        certified=5,
        patience=2.0,
        rho=max(protocol.rho, 0.1),
        test_share=max(protocol.test_share, 0.1),
        quick=True,
        rows=2000,
    )


def _list(numbers: tuple[float, ...] | tuple[int, ...]) -> str:
    return ", ".join(f"{number:g}" for number in numbers)
