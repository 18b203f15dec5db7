"""The approaches that the paper compares with: blind networks and LCIFR."""

from dataclasses import replace

from feta.arrays import Matrix
from feta.errors import CertificateError
from feta.train.baselines import blind_logistic
from feta.train.lcifr import LCIFRRun, LCIFRTrainer
from feta_paper.evaluate import FoldEvaluation, evaluate, network_accuracy, percent
from feta_paper.fold import Fold
from feta_paper.step_result import Figures, StepResult
from feta_paper.training import plain_trainer, selected_rates, train_plain

# LCIFR's authors certify the first thousand people of a test set.
AUTHORS_CERTIFIED = 1000


def blind_full(fold: Fold) -> StepResult:
    """Train a network that cannot read the sensitive columns, with the data and grid of NN_b."""
    run = train_plain(fold, replace(plain_trainer(fold), blind=True, epoch="best"))
    figures = network_accuracy(fold, "blind_full", run.network)
    return StepResult(figures, networks={"blind_full": run.network})


def blind_paper(fold: Fold) -> StepResult:
    """Train blind networks as in the paper: few people, few epochs, the last epoch.

    The paper does not state whether the subset of people is fixed, so both readings are trained.
    """
    learning_rate, batch_size = selected_rates(fold)
    paper = replace(
        plain_trainer(fold),
        blind=True,
        epoch="last",
        epochs=fold.protocol.fair_epochs,
        learning_rates=(learning_rate,),
        batch_sizes=(batch_size,),
        sample_fraction=fold.protocol.rho,
    )
    figures: Figures = {}
    for subset in ("fixed", "fresh"):
        trainer = replace(paper, subset=subset)
        network = trainer.train_folds([fold.split])[0].network
        figures |= network_accuracy(fold, f"blind_{subset}", network)
    return StepResult(figures)


def logistic(fold: Fold) -> StepResult:
    """Fit a logistic regression that cannot read the sensitive columns."""
    network = blind_logistic(fold.space, fold.split.people, fold.split.targets)
    figures = network_accuracy(fold, "blind_logistic", network)
    return StepResult(figures, networks={"blind_logistic": network})


def lcifr(fold: Fold) -> StepResult:
    """Train LCIFR with γ = 1 for the categorical attributes, as in the paper."""
    return _lcifr(fold, "lcifr", gamma=1.0, varied=None)


def lcifr_all(fold: Fold) -> StepResult:
    """Train LCIFR with γ = 1 for all sensitive attributes, the lattice of the other approaches."""
    names = tuple(attribute.name for attribute in fold.space.sensitive)
    return _lcifr(fold, "lcifr_all", gamma=1.0, varied=names)


def lcifr_original(fold: Fold) -> StepResult:
    """Train LCIFR with its authors' γ for the categorical attributes."""
    return _lcifr(fold, "lcifr_original", gamma=fold.protocol.authors_gamma, varied=None)


def _lcifr(fold: Fold, arm: str, *, gamma: float, varied: tuple[str, ...] | None) -> StepResult:
    """Train; evaluate over all counterparts and over those of the categorical attributes."""
    trainer = LCIFRTrainer(
        fold.space,
        attributes=varied,
        gamma=gamma,
        encoder=fold.protocol.encoder,
        epochs=fold.protocol.lcifr_epochs,
        seed=fold.seed,
    )
    people, targets = fold.split.people, fold.split.targets
    run = trainer.train(people, targets, validation=fold.validation, progress=fold.progress)
    categorical = LCIFRTrainer(fold.space).varied
    evaluations = {
        suffix: evaluate(space, run.network, fold.test, fold.labels)
        for suffix, space in (("", fold.space), ("_categories", categorical))
    }
    figures: Figures = {f"{arm}.accuracy": percent(evaluations[""].decisions == fold.labels)}
    for suffix, evaluation in evaluations.items():
        figures[f"{arm}.ce_rate{suffix}"] = percent(evaluation.unfair)
        figures |= _sampled(fold, arm, evaluation, suffix)
    all_counterparts = arm != "lcifr_original"  # its authors certify over the categories
    figures[f"{arm}.certified"] = _certified(
        replace(run, space=fold.space if all_counterparts else categorical),
        evaluations["" if all_counterparts else "_categories"],
        fold.test[: fold.protocol.certified if all_counterparts else AUTHORS_CERTIFIED],
    )
    return StepResult(figures)


def _certified(run: LCIFRRun, evaluation: FoldEvaluation, people: Matrix) -> float:
    """Return the certified share; reject a certificate for a person with a counterexample."""
    certified = run.certified(people)
    if (certified & evaluation.unfair[: len(people)]).any():
        raise CertificateError("LCIFR certified a person who has a counterexample")
    return percent(certified)


def _sampled(fold: Fold, arm: str, evaluation: FoldEvaluation, suffix: str) -> Figures:
    if fold.protocol.test_share >= 1:
        return {}
    sample = evaluation.restricted_to(fold.sampled)
    return {
        f"sample.{arm}.accuracy": percent(sample.decisions == sample.labels),
        f"sample.{arm}.ce_rate{suffix}": percent(sample.unfair),
    }
