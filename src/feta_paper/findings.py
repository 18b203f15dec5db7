"""Findings: what was not met, and the best explanation these measurements allow; inferences, not proofs."""

from collections.abc import Iterator
from dataclasses import dataclass

from feta.io.sanitize import joined
from feta_paper.agreement import placed_all, spoken
from feta_paper.claims import claims, difference
from feta_paper.measurements import Measurements
from feta_paper.paper import BLIND, COUNTERPART, NAMES, ROWS, published
from feta_paper.quantities import found, is_another, papers, placed
from feta_paper.statistics import Difference, summarize
from feta_paper.wording import signed, with_spread

OTHER_ROWS = 0.05  # a share of rows from which on a table is no longer the same


@dataclass(frozen=True, slots=True)
class Explanation:
    """Something that differs from the paper, why we think so, and the figures it accounts for."""

    title: str
    words: str
    accounts_for: tuple[str, ...] = ()


def findings(measured: Measurements) -> list[Explanation]:
    """Give every explanation whose conditions the measurements meet, then what none accounts for."""
    known = [*_rows(measured), *_chance(measured), *_scaling(measured), *_blind_protocol(measured), *_blind_full(measured),
             *_lcifr(measured), *_authors_lcifr(measured), *_certificates(measured), *_curves(measured), *_ties(measured), *_times(measured), *_opposite(measured)]  # fmt: skip
    accounted = {key for one in known for key in one.accounts_for}
    left = [key for key in placed_all(measured).outside if key not in accounted]
    if left:
        named = joined([f"{spoken(key)} ({_against(measured, key)})" for key in left])
        known.append(Explanation("Without an explanation", f"We have none for: {named}. The paper gives neither its folds nor its seeds, and leaves scaling, initialization and selection open; any of these may be it."))  # fmt: skip
    return known


def _against(measured: Measurements, key: str) -> str:
    ours, paper = found(measured, key), papers(measured, key)
    return f"{with_spread(ours)}; paper {paper.text}" if ours and paper else "not measured"


def _interval(apart: Difference) -> str:
    size = f"{signed(apart.mean)} points"
    return f"{size} (interval {signed(apart.interval[0])} to {signed(apart.interval[1])})" if apart.interval else f"{size} (one fold)"  # fmt: skip


def _rows(measured: Measurements) -> Iterator[Explanation]:
    paper = ROWS.get(measured.dataset)
    if paper is None or abs(measured.rows - paper) <= OTHER_ROWS * paper:
        return
    majority = found(measured, "majority.accuracy")
    key = "majority.accuracy"
    level = f" The majority class alone is {_against(measured, key)}." if majority else ""
    outside = placed(measured, key) not in {None, "within"}
    yield Explanation("Other rows", f"This run has {measured.rows:,} rows, the paper about {paper:,}.{level} Part of any difference in level may come from the rows.", (key,) if outside else ())  # fmt: skip


def _scaling(measured: Measurements) -> Iterator[Explanation]:
    """Ask whether raw inputs come nearer to the paper than standardized ones."""
    key = "nn_b.accuracy"
    usual, raw, paper = found(measured, key), found(measured, f"raw.{key}"), papers(measured, key)
    if not usual or not raw or not paper or is_another(measured) or placed(measured, key) == "within":  # fmt: skip
        return
    nearer = tuple(one for one in placed_all(measured).outside if _nearer(measured, one))
    counts = _counts(measured)
    figures = f"NN_b reaches {with_spread(usual)} with standardized inputs, {with_spread(raw)} with raw ones; the paper has {paper.text}."
    if key not in nearer:
        yield Explanation("Scaling of the inputs", f"{figures} Raw inputs do not come nearer, so scaling does not explain it. {counts}")  # fmt: skip
        return
    doubt = ""
    if paper.std is not None and raw.std > 3 * paper.std:
        doubt = f" Against it: over our folds the raw network varies by {raw.std:.2f}, the paper's by {paper.std:.2f}."  # fmt: skip
    usual_within = [one for one in placed_all(measured).within if found(measured, f"raw.{one}")]
    if len(placed_all(measured, "raw.").within) < len(usual_within):
        yield Explanation("Scaling of the inputs: the figures point both ways", f"{figures} For NN_b raw inputs come nearer, for the table as a whole they do not. {counts}{doubt}", (key,))  # fmt: skip
        return
    yield Explanation("Inputs were probably not scaled", f"{figures} Raw inputs come nearer, so the paper probably fed them as they are: an inference, not a proof. {counts}{doubt}", nearer)  # fmt: skip


def _nearer(measured: Measurements, key: str) -> bool:
    """Whether raw inputs at least halve the distance to the paper's figure."""
    usual, raw, paper = found(measured, key), found(measured, f"raw.{key}"), papers(measured, key)
    return bool(usual and raw and paper and 2 * abs(raw.mean - paper.mean) <= abs(usual.mean - paper.mean))  # fmt: skip


def _counts(measured: Measurements) -> str:
    usual, raw = placed_all(measured), placed_all(measured, "raw.")
    both = {key.removeprefix("raw.") for key in (*raw.within, *raw.outside)}
    return f"Of the {len(both)} figures measured with raw inputs, {len(raw.within)} lie within two deviations; with standardized inputs {len(both & set(usual.within))} of the same do."  # fmt: skip


def _blind_protocol(measured: Measurements) -> Iterator[Explanation]:
    """Ask which reading of the blind network's ρ gives the paper's figure."""
    keys = dict(zip(("fresh", "fixed"), BLIND, strict=True))
    places = {name: placed(measured, key) for name, key in keys.items()}
    if None in places.values() or set(places.values()) == {"within"}:
        return
    near = [name for name, where in places.items() if where == "within"]
    both = "; ".join(f"{name} subset {_against(measured, key)}" for name, key in keys.items())
    if near:
        yield Explanation("The blind network's subset", f"{both}. Only the {near[0]} subset gives the paper's figure, so that is probably what was run: an inference.", (keys["fresh"],))  # fmt: skip
        return
    raw = {name: placed(measured, f"raw.{key}") for name, key in keys.items()}
    hint = " With raw inputs it does, which points to scaling." if "within" in raw.values() else ""
    yield Explanation("The blind network", f"{both}. Neither reading of the paper's ρ gives its figure.{hint}", (keys["fresh"],) if hint else ())  # fmt: skip


def _blind_full(measured: Measurements) -> Iterator[Explanation]:
    """Ask whether the gain over blind survives equal data."""
    apart = difference(measured, "trained_vote.accuracy", "blind_full.accuracy")
    claim = papers(measured, "trained_vote.accuracy"), papers(measured, "blind_fresh.accuracy")
    if apart is None or apart.sign > 0 or not claim[0] or not claim[1]:
        return
    gain = f"The paper's gain over blind, {signed(claim[0].mean - claim[1].mean)} points{_of_another(measured)}, is over a blind network trained by the short protocol, ρ of the rows for 50 epochs."  # fmt: skip
    if apart.sign < 0:
        words = "blind by the full protocol is the more accurate"
    elif apart.interval is None:
        words = "by the full protocol one fold cannot tell"
    else:
        words = "by the full protocol no difference is shown"
    yield Explanation("The gain over blind hangs on the protocol", f"{gain} Here, {words}: training + prediction minus blind is {_interval(apart)}. Every fair decision is a function of the other columns alone, so a blind network can in principle match any.")  # fmt: skip


def _of_another(measured: Measurements) -> str:
    return f" on {NAMES[COUNTERPART[measured.dataset]]}" if is_another(measured) else ""


def _lcifr(measured: Measurements) -> Iterator[Explanation]:
    """Say over whom LCIFR's counterexamples were counted, and what its accuracy is like."""
    few, every = found(measured, "lcifr.ce_rate_categories"), found(measured, "lcifr.ce_rate")
    if few and every and every.mean > few.mean + 1:
        yield Explanation("LCIFR's CE rate is over fewer counterparts", f"Over categorical attributes only, as the paper counts it, LCIFR's CE rate is {with_spread(few)} %; over all counterparts, as for everybody else, {with_spread(every)} %.")  # fmt: skip
    key = "lcifr.accuracy"
    if placed(measured, key) in {None, "within"}:
        return
    paper, majority = papers(measured, key), published(measured.dataset, "majority.accuracy")
    level = ""
    if paper and majority and paper.std is not None and abs(paper.mean - majority.mean) <= 2 * paper.std:  # fmt: skip
        level = f" The paper's figure lies by its own majority class ({majority.text}), as that of a network which learned little would; why, we do not know."  # fmt: skip
    yield Explanation("LCIFR's accuracy", f"{_against(measured, key)}. Ours is written anew from its description, and the paper's extension of it is not described.{level}", (key,))  # fmt: skip


def _authors_lcifr(measured: Measurements) -> Iterator[Explanation]:
    """Name what is far from Table 6, which prints no deviation to be held against."""
    keys = ("lcifr_original.accuracy", "lcifr_original.uncertified")
    far = [] if is_another(measured) else [key for key in keys if _is_far(measured, key)]
    if far:
        named = joined([f"{spoken(key)} ({_against(measured, key)})" for key in far])
        yield Explanation("LCIFR with its authors' γ", f"Farther from Table 6 than two standard errors of our folds: {named}. Table 6 prints no deviations, and does not say on which people its figures are. Ours is written anew and varies other attributes than its authors do on German; with few rows the size of a batch alone moves it by points.")  # fmt: skip


def _is_far(measured: Measurements, key: str) -> bool:
    ours, paper = found(measured, key), papers(measured, key)
    return bool(ours and paper and ours.n > 1 and abs(ours.mean - paper.mean) > 2 * ours.error)


def _certificates(measured: Measurements) -> Iterator[Explanation]:
    key = "lcifr_original.uncertified"
    without, apart = found(measured, key), found(measured, "lcifr_original.ce_rate_categories")
    paper = papers(measured, key)
    if without and apart and paper and paper.mean > 1 and apart.mean < without.mean - 1:
        yield Explanation("A share without certificate is no CE rate", f"Table 6 of the paper prints {paper.text} % as LCIFR's CE rate{_of_another(measured)}. Here {with_spread(without)} % are without a certificate, and {with_spread(apart)} % have a counterexample: the certificate is incomplete.")  # fmt: skip


def _ties(measured: Measurements) -> Iterator[Explanation]:
    apart = found(measured, "printed.treated_apart")
    if apart and apart.mean > 0:
        yield Explanation("Algorithm 1 as printed is not fair on ties", f"It leaves {apart.mean:.1f} people of a test fold, on average, with a decision that hangs on their sensitive attributes. Equation 5 of the paper decides ties one way for everybody; that is what FETA does.")  # fmt: skip


def _times(measured: Measurements) -> Iterator[Explanation]:
    key = "vote.single_ratio"
    ours, paper = found(measured, key), papers(measured, key)
    if ours and paper and ours.mean < paper.mean / 2:
        yield Explanation("The times", f"A fair decision costs {ours.mean:,.2g} forward passes here, {paper.mean:,.0f} in the paper{_of_another(measured)}, each of one person. Both are ratios on one machine each; the paper counts with a MILP solver, FETA searches the lattice directly.")  # fmt: skip


def _curves(measured: Measurements) -> Iterator[Explanation]:
    """Hold the paper's one sentence on its training curves against ours."""
    folds = [fold for fold in measured.curves.get("trained.average_violation", []) if len(fold) > 1]
    first, last = (summarize([fold[place] for fold in folds]) for place in (0, -1))
    if first and last and last.mean >= first.mean:
        yield Explanation("The average violation does not fall", f"The paper says that it substantially decreases during training. Here it goes from {first.mean:.3g} ± {first.std:.2g} to {last.mean:.3g} ± {last.std:.2g}. It is over the people who have a counterexample, in logits: as the network goes on learning, its scores grow, and with them the gaps that are left. An inference.")  # fmt: skip


def _chance(measured: Measurements) -> Iterator[Explanation]:
    """Name the figures whose distance is no larger than our own folds' spread allows."""
    near = []
    for key in placed_all(measured).outside:
        ours = found(measured, key)
        if ours and ours.n > 1 and not _is_far(measured, key):
            near.append(key)
    if near:
        named = joined([f"{spoken(key)} ({_against(measured, key)})" for key in near])
        yield Explanation("May be chance", f"Outside the paper's two deviations, but within two standard errors of our own folds: {named}.", tuple(near))  # fmt: skip


def _opposite(measured: Measurements) -> Iterator[Explanation]:
    """List the differences that came out the other way round."""
    turned = [one for one in claims(measured) if one.agrees is False]
    if turned:
        named = "; ".join(f"{one.words} {_interval(one.here)}, paper {signed(one.paper)}" for one in turned if one.here and one.paper)  # fmt: skip
        whose = " The paper's are of IPUMS Adult." if is_another(measured) else ""
        yield Explanation("The other way round than in the paper", f"{named}.{whose}")
