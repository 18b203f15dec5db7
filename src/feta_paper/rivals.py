"""Rivals: what the paper compares with: networks that cannot read what is sensitive, and LCIFR."""

from dataclasses import replace

from feta.arrays import Matrix
from feta.errors import CertificateError
from feta.train.baselines import blind_logistic
from feta.train.lcifr import LCIFRRun, LCIFRTrainer
from feta_paper.evaluate import Look, look_at, percent
from feta_paper.fold import Bench
from feta_paper.judge import right
from feta_paper.outcome import Figures, StepResult
from feta_paper.training import grid, rates, train_plain

# LCIFR's authors certify the first thousand of a test part.
LOOKED_AT = 1000


def blind_full(bench: Bench) -> StepResult:
    """Train a network that cannot read the sensitive columns, with all that NN_b is given."""
    run = train_plain(bench, replace(grid(bench), blind=True, epoch="best"))
    return StepResult(right(bench, "blind_full", run.network), networks={"blind_full": run.network})


def blind_paper(bench: Bench) -> StepResult:
    """Train blind networks as the paper has them: few people, few epochs, the last; fixed and fresh."""
    rate, size = rates(bench)
    paper = replace(
        grid(bench),
        blind=True,
        epoch="last",
        epochs=bench.protocol.fair_epochs,
        learning_rates=(rate,),
        batch_sizes=(size,),
        sample_fraction=bench.protocol.rho,
    )
    figures: Figures = {}
    for subset in ("fixed", "fresh"):
        trainer = replace(paper, subset=subset)
        network = trainer.train_folds([bench.split])[0].network
        figures |= right(bench, f"blind_{subset}", network)
    return StepResult(figures)


def logistic(bench: Bench) -> StepResult:
    """Fit a logistic regression that cannot read the sensitive columns."""
    network = blind_logistic(bench.space, bench.split.people, bench.split.targets)
    return StepResult(right(bench, "blind_logistic", network), networks={"blind_logistic": network})


def lcifr(bench: Bench) -> StepResult:
    """Train LCIFR with γ = 1, for the categorical attributes, as in the paper."""
    return _lcifr(bench, "lcifr", gamma=1.0, varied=None)


def lcifr_all(bench: Bench) -> StepResult:
    """Train LCIFR with γ = 1 for all sensitive attributes: the same lattice as everybody's."""
    everything = tuple(one.name for one in bench.space.sensitive)
    return _lcifr(bench, "lcifr_all", gamma=1.0, varied=everything)


def lcifr_original(bench: Bench) -> StepResult:
    """Train LCIFR with its authors' γ, for the categorical attributes."""
    return _lcifr(bench, "lcifr_original", gamma=bench.protocol.authors_gamma, varied=None)


def _lcifr(bench: Bench, arm: str, *, gamma: float, varied: tuple[str, ...] | None) -> StepResult:
    """Train, and judge over all counterparts and over those of the categories alone."""
    trainer = LCIFRTrainer(
        bench.space,
        attributes=varied,
        gamma=gamma,
        encoder=bench.protocol.encoder,
        epochs=bench.protocol.lcifr_epochs,
        seed=bench.seed,
    )
    people, targets = bench.split.people, bench.split.targets
    run = trainer.train(people, targets, validation=bench.validation, progress=bench.tell)
    few = LCIFRTrainer(bench.space).varied
    looks = {
        suffix: look_at(space, run.network, bench.test, bench.labels)
        for suffix, space in (("", bench.space), ("_categories", few))
    }
    figures: Figures = {f"{arm}.accuracy": percent(looks[""].own == bench.labels)}
    for suffix, look in looks.items():
        figures[f"{arm}.ce_rate{suffix}"] = percent(look.apart)
        figures |= _sampled(bench, arm, look, suffix)
    ours = arm != "lcifr_original"  # its authors certify over the categories
    figures[f"{arm}.certified"] = _certified(
        replace(run, space=bench.space if ours else few),
        looks["" if ours else "_categories"],
        bench.test[: bench.protocol.certified if ours else LOOKED_AT],
    )
    return StepResult(figures)


def _certified(run: LCIFRRun, look: Look, people: Matrix) -> float:
    """Give the share certified; a certificate for somebody with a counterexample would be a lie."""
    certified = run.certified(people)
    if (certified & look.apart[: len(people)]).any():
        raise CertificateError("LCIFR certified somebody who has a counterexample")
    return percent(certified)


def _sampled(bench: Bench, arm: str, look: Look, suffix: str) -> Figures:
    if bench.protocol.test_share >= 1:
        return {}
    some = look.of(bench.sampled)
    return {
        f"sample.{arm}.accuracy": percent(some.own == some.labels),
        f"sample.{arm}.ce_rate{suffix}": percent(some.apart),
    }
