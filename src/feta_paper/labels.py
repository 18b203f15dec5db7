"""Names of approaches, steps and quantities in tables and sentences."""

from feta.train.chooser import SPAN

ARMS = {
    "nn_b": "NN_b, as trained",
    "majority": "Majority class",
    "vote": "CE-Fair prediction",
    "empirical_vote": "CE-Fair prediction, empirical weights",
    "trained": "CE-Fair training",
    "trained_vote": "CE-Fair training + prediction",
    "trained_empirical_vote": "CE-Fair training + prediction, empirical weights",
    "other_batch": "CE-Fair training, the other kind of batch",
    "other_batch_vote": "CE-Fair training, the other kind of batch, + prediction",
    "default": "FETA's default training",
    "default_vote": "FETA's default training + prediction",
    "span": f"Span training ({SPAN})",
    "span_vote": "Span training + prediction",
    "blind_fixed": "Blind, paper's protocol, one fixed subset",
    "blind_fresh": "Blind, paper's protocol, a fresh subset each epoch",
    "blind_full": "Blind, full protocol",
    "blind_logistic": "Blind logistic regression",
    "lcifr": "LCIFR, γ = 1",
    "lcifr_all": "LCIFR, γ = 1, all sensitive attributes varied",
    "lcifr_original": "LCIFR, its authors' γ and encoder",
    "chosen": "The chooser's pick",
    "printed": "Algorithm 1 as printed",
    "printed_trained": "Algorithm 1 as printed, after CE-Fair training",
    "forward": "Forward pass",
    "counting": "Counting",
}
# Steps that are not approaches.
STEPS = {
    "start": "NN_b once more, its best epoch",
    "blind_paper": "Blind, paper's protocol, both subsets",
    "votes": "Timing fair decisions",
    "ways": "Timing ways to count",
}
QUANTITIES = {
    "accuracy": "accuracy, %",
    "flip_rate": "flip rate, %",
    "ce_rate": "CE rate, %",
    "ce_rate_real": "CE rate, real age, %",
    "ce_rate_categories": "CE rate, categorical attributes only, %",
    "certified": "certified, %",
    "uncertified": "without a certificate, %",
    "single_seconds": "time of one person",
    "single_ratio": "ratio to a forward pass of one person",
    "seconds": "time per person, in a batch",
    "ratio": "ratio to a forward pass of the batch",
    "treated_apart": "people with different decisions by a tie",
    "tied": "people with a tie",
    "naive_seconds": "enumeration, one by one: per person",
    "naive_total": "enumeration, one by one: per test fold",
    "vectorized_seconds": "enumeration, vectorized: per person",
    "vectorized_total": "enumeration, vectorized: per test fold",
    "milp_find_seconds": "first counterexample by MILP: per person",
    "milp_seconds": "counterexample-guided counting by MILP: per person",
    "milp_total": "counterexample-guided counting by MILP: per test fold",
    "compiled_seconds": "compiled search: per person",
    "compiled_total": "compiled search: per test fold",
}


def step_title(name: str) -> str:
    """Return the title of a step."""
    title = (ARMS | STEPS).get(name.removeprefix("raw."), name)
    return f"{title}, raw inputs" if name.startswith("raw.") else title


def describe(key: str) -> str:
    """Name a figure in a sentence."""
    arm, _, quantity = key.rpartition(".")
    return f"{QUANTITIES[quantity].removesuffix(', %')} of “{ARMS[arm.rpartition('.')[2]]}”"


def has_label(key: str) -> bool:
    """Return whether both the approach and the quantity of a key have a name."""
    arm, _, quantity = key.rpartition(".")
    return arm in ARMS and quantity in QUANTITIES
