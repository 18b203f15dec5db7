"""Counts per outcome, wrong results by class, refusals by message."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from campaigns.tables.combinations import Combination
from campaigns.tables.outcome import Outcome

MIN_COMBINATIONS = 100  # with fewer combinations, the share of answers is not checked
MIN_SHARE = 0.85
MAX_CHARACTERS = 400  # characters of a message


def print_left_out(chosen: list[Combination]) -> int:
    """List combinations, and reasons of those left out before anything is fitted."""
    for combination in chosen:
        reason = combination.left_out
        print(f"{combination.name}: {reason}" if reason else combination.name)
    n_left_out = sum(bool(combination.left_out) for combination in chosen)
    print(
        f"{len(chosen) - n_left_out} combinations, {n_left_out} left out by rule; "
        "scikit-learn refuses more"
    )
    return 0


def summarize(outcomes: list[Outcome], *, verbose: bool) -> int:
    """Print everything; return 1 if the campaign failed, else 0."""
    attempted = [outcome for outcome in outcomes if outcome.kind != "left out"]
    _print_reasons(outcomes)
    _print_refusals(
        [outcome for outcome in attempted if outcome.kind == "refused"], verbose=verbose
    )
    for outcome in attempted:
        if outcome.kind == "crashed":
            print(f"CRASH {outcome.name}: {outcome.message[:MAX_CHARACTERS]}")
    wrong = [outcome for outcome in attempted if outcome.wrong]
    for outcome in wrong:
        print(_line(outcome))
    _print_classes(attempted)
    counts = _counts(attempted)
    for name, count in counts.items():
        print(f"{name}: {count}")
    answered = sum(outcome.kind == "answered" and not outcome.wrong for outcome in attempted)
    share = answered / max(1, len(attempted))
    print(f"{answered} of {len(attempted)} combinations answered correctly, {100 * share:.1f} %")
    few = len(attempted) >= MIN_COMBINATIONS and share < MIN_SHARE
    if few:
        print(f"WRONG: fewer than {100 * MIN_SHARE:.0f} % are answered")
    return int(few or any(count for name, count in counts.items() if name.startswith("WRONG")))


def _counts(attempted: list[Outcome]) -> dict[str, int]:
    kinds = Counter(outcome.kind for outcome in attempted)
    answered = [outcome for outcome in attempted if outcome.kind in ("answered", "undecided")]
    decisions = sum(n for outcome in answered for _, n in outcome.wrong_decisions)
    return {
        "combinations": len(attempted),
        **{name: kinds[name] for name in ("answered", "undecided", "refused")},
        "combinations with fair and unfair rows": sum(0 < o.unfair < o.rows for o in answered),
        "rows compared": sum(outcome.rows - outcome.near for outcome in answered),
        "rows skipped, too close to one half": sum(outcome.near for outcome in answered),
        "WRONG crashes": kinds["crashed"],
        "WRONG combinations": sum(outcome.wrong for outcome in answered),
        "WRONG schemas": sum(bool(outcome.problems) for outcome in answered),
        "WRONG verdicts: fair": sum(outcome.wrong_fair for outcome in answered),
        "WRONG verdicts: unfair": sum(outcome.wrong_unfair for outcome in answered),
        "WRONG decisions: of the model": sum(outcome.wrong_model for outcome in answered),
        "WRONG decisions: fair": decisions,
        "WRONG refusals: vague": sum(bool(outcome.vague) for outcome in attempted),
    }


def _line(outcome: Outcome) -> str:
    parts = [
        f"{count} {what}"
        for what, count in (
            ("wrong fair", outcome.wrong_fair),
            ("wrong unfair", outcome.wrong_unfair),
            ("wrong model decisions", outcome.wrong_model),
            *((f"wrong decisions of {source}", count) for source, count in outcome.wrong_decisions),
        )
        if count
    ]
    return f"WRONG {outcome.name}: " + "; ".join([*parts, *outcome.problems[:2]])


def _print_reasons(outcomes: list[Outcome]) -> None:
    """Print why combinations are left out, with counts."""
    left = [outcome for outcome in outcomes if outcome.kind == "left out"]
    reasons = Counter(_general(outcome.message) for outcome in left)
    print(f"left out: {len(left)}")
    for reason, count in reasons.most_common():
        print(f"  {count} times {reason[:MAX_CHARACTERS]}")


def _print_refusals(refused: list[Outcome], *, verbose: bool) -> None:
    """Print refusals grouped by message, with one example in full each."""
    groups: defaultdict[str, list[Outcome]] = defaultdict(list)
    for outcome in refused:
        groups[
            f"{outcome.step}: {outcome.message if verbose else _general(outcome.message)}"
        ].append(outcome)
    print(f"refused: {len(refused)}")
    for group in sorted(groups.values(), key=len, reverse=True):
        outcome = group[0]
        lacks = sorted({what for member in group for what in member.vague})
        note = f" [does not name: {', '.join(lacks)}]" if lacks else ""
        message = outcome.message if verbose else outcome.message[:MAX_CHARACTERS]
        print(f"  {len(group)} times {outcome.step}: {message} ({outcome.name}){note}")


def _general(message: str) -> str:
    """Replace what varies between cases: quoted texts, lists and numbers."""
    return re.sub(r"\[[^\]]*\]|'[^']*'|\"[^\"]*\"|\d+(\.\d+)?", "…", message)


def _print_classes(attempted: Iterable[Outcome]) -> None:
    """Print, per content, file, reading and role, the encoders whose outcome is not an answer."""
    table: defaultdict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for outcome in attempted:
        content, encoder, *rest = outcome.name.split("/")
        kind = "wrong" if outcome.wrong else outcome.kind
        table["/".join([content, *rest])][kind].append(encoder)
    for name, kinds in table.items():
        parts = [
            f"{len(encoders)} {kind} ({', '.join(encoders)})"
            for kind, encoders in kinds.items()
            if kind != "answered"
        ]
        if parts:
            print(f"{name}: " + "; ".join([f"{len(kinds['answered'])} answered", *parts]))
