"""Figures that the run did not reproduce, with the most likely explanations (inferences)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from feta.io.sanitize import joined
from feta_paper.agreement import placements
from feta_paper.claims import claims, difference
from feta_paper.labels import describe
from feta_paper.measurements import Measurements
from feta_paper.paper import BLIND, COUNTERPART, NAMES, ROWS, published
from feta_paper.quantities import other_dataset, paper_figure, place_of, summary_of
from feta_paper.statistics import Difference, summarize
from feta_paper.wording import signed, with_spread

OTHER_ROWS = 0.05  # with a larger difference in the number of rows, a data set is not the same


@dataclass(frozen=True, slots=True)
class Explanation:
    """A difference from the paper, its likely cause, and the figures that it explains."""

    title: str
    words: str  # starts in lower case if it continues the title
    explains: tuple[str, ...] = ()


def findings(measured: Measurements) -> list[Explanation]:
    """Return all explanations whose conditions hold, then the figures without one."""
    rules = (
        _rows,
        _chance,
        _scaling,
        _blind_protocol,
        _blind_full,
        _lcifr,
        _authors_lcifr,
        _certificates,
        _curves,
        _ties,
        _times,
        _opposite,
    )
    explanations = [explanation for rule in rules for explanation in rule(measured)]
    explained = {key for explanation in explanations for key in explanation.explains}
    rest = [key for key in placements(measured).outside if key not in explained]
    if rest:
        words = (
            f"{_list(measured, rest)}. The paper states neither folds nor seeds, nor scaling, "
            "initialization and selection. Any of these may be the cause."
        )
        explanations.append(Explanation("Unexplained", words))
    return explanations


def _compare(measured: Measurements, key: str) -> str:
    ours, paper = summary_of(measured, key), paper_figure(measured, key)
    return f"{with_spread(ours)}; paper {paper.text}" if ours and paper else "not measured"


def _list(measured: Measurements, keys: Sequence[str]) -> str:
    return joined([f"{describe(key)} ({_compare(measured, key)})" for key in keys])


def _interval(gap: Difference) -> str:
    points = f"{signed(gap.mean)} points"
    if gap.interval is None:
        return f"{points} (one fold)"
    return f"{points} (interval {signed(gap.interval[0])} to {signed(gap.interval[1])})"


def _rows(measured: Measurements) -> Iterator[Explanation]:
    """Check whether the run has another number of rows than the paper."""
    paper = ROWS.get(measured.dataset)
    if paper is None or abs(measured.rows - paper) <= OTHER_ROWS * paper:
        return
    key = "majority.accuracy"
    level = ""
    if summary_of(measured, key):
        level = f" The accuracy of the majority class is {_compare(measured, key)}."
    words = (
        f"This run has {measured.rows:,} rows, the paper about {paper:,}.{level} "
        "The rows may explain part of any difference in level."
    )
    outside = place_of(measured, key) not in {None, "within"}
    yield Explanation("Other rows", words, (key,) if outside else ())


def _scaling(measured: Measurements) -> Iterator[Explanation]:
    """Check whether raw inputs are closer to the paper than standardized ones."""
    key = "nn_b.accuracy"
    scaled, raw = summary_of(measured, key), summary_of(measured, f"raw.{key}")
    paper = paper_figure(measured, key)
    if not scaled or not raw or not paper or other_dataset(measured):
        return
    if place_of(measured, key) == "within":
        return
    closer = tuple(one for one in placements(measured).outside if _raw_is_closer(measured, one))
    counts = _counts(measured)
    figures = (
        f"NN_b reaches {with_spread(scaled)} with standardized inputs, {with_spread(raw)} with raw "
        f"ones; the paper has {paper.text}."
    )
    if key not in closer:
        words = f"{figures} Raw inputs do not come closer, so scaling does not explain it. {counts}"
        yield Explanation("Scaling of the inputs", words)
        return
    counterargument = ""
    if paper.std is not None and raw.std > 3 * paper.std:
        counterargument = (
            f" A counterargument: over our folds the raw network varies by {raw.std:.2f}, "
            f"the paper's by {paper.std:.2f}."
        )
    scaled_within = [
        one for one in placements(measured).within if summary_of(measured, f"raw.{one}")
    ]
    if len(placements(measured, "raw.").within) < len(scaled_within):
        words = (
            f"{figures} For NN_b raw inputs come closer, for the table as a whole they do not. "
            f"{counts}{counterargument}"
        )
        yield Explanation("Scaling of the inputs: the figures are inconclusive", words, (key,))
        return
    words = (
        f"{figures} Raw inputs come closer, so the paper probably used raw inputs. "
        f"This is an inference, not a proof. {counts}{counterargument}"
    )
    yield Explanation("Inputs were probably not scaled", words, closer)


def _raw_is_closer(measured: Measurements, key: str) -> bool:
    """Return whether raw inputs at least halve the distance to the paper's figure."""
    scaled, raw = summary_of(measured, key), summary_of(measured, f"raw.{key}")
    paper = paper_figure(measured, key)
    if not scaled or not raw or not paper:
        return False
    return 2 * abs(raw.mean - paper.mean) <= abs(scaled.mean - paper.mean)


def _counts(measured: Measurements) -> str:
    scaled, raw = placements(measured), placements(measured, "raw.")
    both = {key.removeprefix("raw.") for key in (*raw.within, *raw.outside)}
    return (
        f"Of the {len(both)} figures measured with raw inputs, {len(raw.within)} are within two "
        f"deviations; with standardized inputs, {len(both & set(scaled.within))} of the same "
        "figures are."
    )


def _blind_protocol(measured: Measurements) -> Iterator[Explanation]:
    """Check which interpretation of the blind network's ρ gives the paper's figure."""
    keys = dict(zip(("fresh", "fixed"), BLIND, strict=True))
    places = {name: place_of(measured, key) for name, key in keys.items()}
    if None in places.values() or set(places.values()) == {"within"}:
        return
    within = [name for name, place in places.items() if place == "within"]
    figures = "; ".join(f"{name} subset {_compare(measured, key)}" for name, key in keys.items())
    figures = figures[0].upper() + figures[1:]
    if within:
        words = (
            f"{figures}. Only the {within[0]} subset gives the paper's figure, "
            "so the paper probably used it. This is an inference."
        )
        yield Explanation("The blind network's subset", words, (keys["fresh"],))
        return
    raw = {name: place_of(measured, f"raw.{key}") for name, key in keys.items()}
    raw_within = "within" in raw.values()
    hint = " Raw inputs do, which suggests scaling as the cause." if raw_within else ""
    words = f"{figures}. Neither interpretation of the paper's ρ gives its figure.{hint}"
    yield Explanation("The blind network", words, (keys["fresh"],) if hint else ())


def _blind_full(measured: Measurements) -> Iterator[Explanation]:
    """Check whether the gain over blind remains with equal data."""
    gap = difference(measured, "trained_vote.accuracy", "blind_full.accuracy")
    trained = paper_figure(measured, "trained_vote.accuracy")
    blind = paper_figure(measured, "blind_fresh.accuracy")
    if gap is None or gap.sign > 0 or not trained or not blind:
        return
    if gap.sign < 0:
        result = "By the full protocol the blind network is more accurate here"
    elif gap.interval is None:
        result = "By the full protocol one fold shows no direction here"
    else:
        result = "By the full protocol no difference shows here"
    words = (
        f"The paper's gain over blind, {signed(trained.mean - blind.mean)} "
        f"points{_on_other_dataset(measured)}, is over a blind network trained by the short "
        f"protocol, ρ of the rows for 50 epochs. {result}: training + prediction minus blind is "
        f"{_interval(gap)}. Every fair decision is a function of the other columns alone, "
        "so a blind network can in principle match any of them."
    )
    yield Explanation("The gain over blind depends on the protocol", words)


def _on_other_dataset(measured: Measurements) -> str:
    return f" on {NAMES[COUNTERPART[measured.dataset]]}" if other_dataset(measured) else ""


def _lcifr(measured: Measurements) -> Iterator[Explanation]:
    """Check over which counterparts LCIFR's counterexamples were counted, and its accuracy."""
    categories = summary_of(measured, "lcifr.ce_rate_categories")
    every = summary_of(measured, "lcifr.ce_rate")
    if categories and every and every.mean > categories.mean + 1:
        words = (
            "Over categorical attributes only, as in the paper, LCIFR's CE rate is "
            f"{with_spread(categories)} %. Over all counterparts, as for the other approaches, "
            f"it is {with_spread(every)} %."
        )
        yield Explanation("LCIFR's CE rate is over fewer counterparts", words)
    key = "lcifr.accuracy"
    if place_of(measured, key) in {None, "within"}:
        return
    words = (
        f"{_compare(measured, key)}. Ours is a new implementation of its description, "
        "and the paper does not describe its extension."
    )
    paper, majority = paper_figure(measured, key), published(measured.dataset, "majority.accuracy")
    std = paper.std if paper else None
    if paper and majority and std is not None and abs(paper.mean - majority.mean) <= 2 * std:
        words += (
            f" The paper's figure is close to its majority class ({majority.text}), "
            "as for a network that learned little. The cause is unknown."
        )
    yield Explanation("LCIFR's accuracy", words, (key,))


def _authors_lcifr(measured: Measurements) -> Iterator[Explanation]:
    """Check the figures of Table 6, which have no deviation, against our standard errors."""
    keys = ("lcifr_original.accuracy", "lcifr_original.uncertified")
    far = [] if other_dataset(measured) else [key for key in keys if _is_far(measured, key)]
    if far:
        words = (
            "More than two standard errors of our folds away from Table 6: "
            f"{_list(measured, far)}. Table 6 prints no deviations, and does not state which "
            "people it covers. Ours is a new implementation, and varies other attributes than its "
            "authors do on German. With few rows, the batch size alone changes the result by "
            "points."
        )
        yield Explanation("LCIFR with its authors' γ", words)


def _is_far(measured: Measurements, key: str) -> bool:
    ours, paper = summary_of(measured, key), paper_figure(measured, key)
    return bool(ours and paper and ours.n > 1 and abs(ours.mean - paper.mean) > 2 * ours.error)


def _certificates(measured: Measurements) -> Iterator[Explanation]:
    """Check whether more people lack a certificate than have a counterexample."""
    key = "lcifr_original.uncertified"
    uncertified = summary_of(measured, key)
    unfair = summary_of(measured, "lcifr_original.ce_rate_categories")
    paper = paper_figure(measured, key)
    if not uncertified or not unfair or not paper:
        return
    if paper.mean > 1 and unfair.mean < uncertified.mean - 1:
        words = (
            f"Table 6 of the paper prints {paper.text} % as LCIFR's CE "
            f"rate{_on_other_dataset(measured)}. Here {with_spread(uncertified)} % have no "
            f"certificate, and {with_spread(unfair)} % have a counterexample: "
            "the certificate is incomplete."
        )
        yield Explanation("A share without a certificate is not a CE rate", words)


def _ties(measured: Measurements) -> Iterator[Explanation]:
    unfair = summary_of(measured, "printed.treated_apart")
    if unfair and unfair.mean > 0:
        words = (
            f"It leaves {unfair.mean:.1f} people of a test fold, on average, with a decision that "
            "depends on their sensitive attributes. Equation 5 of the paper decides ties the same "
            "way for everybody, and so does FETA."
        )
        yield Explanation("Algorithm 1 as printed is not fair on ties", words)


def _times(measured: Measurements) -> Iterator[Explanation]:
    key = "vote.single_ratio"
    ours, paper = summary_of(measured, key), paper_figure(measured, key)
    if ours and paper and ours.mean < paper.mean / 2:
        words = (
            f"A fair decision costs {ours.mean:,.2g} forward passes here, {paper.mean:,.0f} in the "
            f"paper{_on_other_dataset(measured)}, each for one person. Each is a ratio on one "
            "machine. The paper counts with a MILP solver; FETA searches the lattice directly."
        )
        yield Explanation("The times", words)


def _curves(measured: Measurements) -> Iterator[Explanation]:
    """Check the paper's statement that the average violation falls during training."""
    curves = measured.curves.get("trained.average_violation", [])
    folds = [fold for fold in curves if len(fold) > 1]
    first, last = (summarize([fold[epoch] for fold in folds]) for epoch in (0, -1))
    if first and last and last.mean >= first.mean:
        words = (
            "The paper states that it substantially decreases during training. Here it changes "
            f"from {first.mean:.3g} ± {first.std:.2g} to {last.mean:.3g} ± {last.std:.2g}. "
            "It is the mean over people with a counterexample, in logits. As the network keeps "
            "learning, its scores grow, and so do the remaining gaps. This is an inference."
        )
        yield Explanation("The average violation does not fall", words)


def _chance(measured: Measurements) -> Iterator[Explanation]:
    """Check which distances are no larger than the spread of our folds allows."""
    near = []
    for key in placements(measured).outside:
        ours = summary_of(measured, key)
        if ours and ours.n > 1 and not _is_far(measured, key):
            near.append(key)
    if near:
        words = (
            "Outside the paper's two deviations, but within two standard errors of our folds: "
            f"{_list(measured, near)}."
        )
        yield Explanation("May be chance", words, tuple(near))


def _opposite(measured: Measurements) -> Iterator[Explanation]:
    """Check which differences have the opposite direction."""
    opposite = [claim for claim in claims(measured) if claim.agrees is False]
    if opposite:
        differences = "; ".join(
            f"{claim.words} {_interval(claim.here)}, paper {signed(claim.paper)}"
            for claim in opposite
            if claim.here and claim.paper
        )
        source = " The paper's figures are of IPUMS Adult." if other_dataset(measured) else ""
        yield Explanation("Opposite direction to the paper", f"{differences}.{source}")
