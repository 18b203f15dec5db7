"""Counts per outcome, wrong results by class, refusals by message."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from campaigns.tables.combinations import Combination
from campaigns.tables.outcome import Outcome

ENOUGH = 100  # combinations from which on the share of answers is checked
SHARE = 0.85
SHOWN = 400  # characters of a message


def print_left_out(chosen: list[Combination]) -> int:
    """List combinations, and reasons of those left out before anything is fitted."""
    for one in chosen:
        print(f"{one.name}: {one.left_out}" if one.left_out else one.name)
    left = sum(bool(one.left_out) for one in chosen)
    print(f"{len(chosen) - left} combinations, {left} left out by rule; scikit-learn refuses more")
    return 0


def summarize(outcomes: list[Outcome], *, verbose: bool) -> int:
    """Print everything; return 1 if the campaign failed, else 0."""
    tried = [one for one in outcomes if one.kind != "left out"]
    _print_reasons(outcomes)
    _print_refusals([one for one in tried if one.kind == "refused"], verbose=verbose)
    for one in tried:
        if one.kind == "crashed":
            print(f"CRASH {one.name}: {one.message[:SHOWN]}")
    wrong = [one for one in tried if one.wrong]
    for one in wrong:
        print(_line(one))
    _print_classes(tried)
    counts = _counts(tried)
    for name, count in counts.items():
        print(f"{name}: {count}")
    answered = sum(one.kind == "answered" and not one.wrong for one in tried)
    share = answered / max(1, len(tried))
    print(f"{answered} of {len(tried)} combinations answered correctly, {100 * share:.1f} %")
    few = len(tried) >= ENOUGH and share < SHARE
    if few:
        print(f"WRONG: fewer than {100 * SHARE:.0f} % are answered")
    return int(few or any(count for name, count in counts.items() if name.startswith("WRONG")))


def _counts(tried: list[Outcome]) -> dict[str, int]:
    kinds = Counter(one.kind for one in tried)
    answered = [one for one in tried if one.kind in ("answered", "undecided")]
    decisions = sum(n for one in answered for _, n in one.wrong_decisions)
    return {
        "combinations": len(tried),
        **{name: kinds[name] for name in ("answered", "undecided", "refused")},
        "combinations with fair and unfair rows": sum(0 < o.unfair < o.rows for o in answered),
        "rows compared": sum(one.rows - one.near for one in answered),
        "rows skipped, too close to one half": sum(one.near for one in answered),
        "WRONG crashes": kinds["crashed"],
        "WRONG combinations": sum(one.wrong for one in answered),
        "WRONG schemas": sum(bool(one.problems) for one in answered),
        "WRONG verdicts: fair": sum(one.wrong_fair for one in answered),
        "WRONG verdicts: unfair": sum(one.wrong_unfair for one in answered),
        "WRONG decisions: of the model": sum(one.wrong_own for one in answered),
        "WRONG decisions: fair": decisions,
        "WRONG refusals: vague": sum(bool(one.vague) for one in tried),
    }


def _line(one: Outcome) -> str:
    parts = [
        f"{count} {what}"
        for what, count in (
            ("wrong fair", one.wrong_fair),
            ("wrong unfair", one.wrong_unfair),
            ("wrong model decisions", one.wrong_own),
            *((f"wrong decisions of {source}", count) for source, count in one.wrong_decisions),
        )
        if count
    ]
    return f"WRONG {one.name}: " + "; ".join([*parts, *one.problems[:2]])


def _print_reasons(outcomes: list[Outcome]) -> None:
    """Print why combinations are left out, with counts."""
    left = [one for one in outcomes if one.kind == "left out"]
    reasons = Counter(_general(one.message) for one in left)
    print(f"left out: {len(left)}")
    for reason, count in reasons.most_common():
        print(f"  {count} times {reason[:SHOWN]}")


def _print_refusals(refused: list[Outcome], *, verbose: bool) -> None:
    """Print refusals grouped by message, with one example in full each."""
    groups: defaultdict[str, list[Outcome]] = defaultdict(list)
    for one in refused:
        groups[f"{one.step}: {one.message if verbose else _general(one.message)}"].append(one)
    print(f"refused: {len(refused)}")
    for group in sorted(groups.values(), key=len, reverse=True):
        one = group[0]
        lacks = sorted({what for member in group for what in member.vague})
        note = f" [does not name: {', '.join(lacks)}]" if lacks else ""
        message = one.message if verbose else one.message[:SHOWN]
        print(f"  {len(group)} times {one.step}: {message} ({one.name}){note}")


def _general(message: str) -> str:
    """Replace what varies between cases: quoted texts, lists and numbers."""
    return re.sub(r"\[[^\]]*\]|'[^']*'|\"[^\"]*\"|\d+(\.\d+)?", "…", message)


def _print_classes(tried: Iterable[Outcome]) -> None:
    """Print, per content, file, reading and role, the encoders whose outcome is not an answer."""
    table: defaultdict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for one in tried:
        content, encoder, *rest = one.name.split("/")
        kind = "wrong" if one.wrong else one.kind
        table["/".join([content, *rest])][kind].append(encoder)
    for name, kinds in table.items():
        parts = [
            f"{len(encoders)} {kind} ({', '.join(encoders)})"
            for kind, encoders in kinds.items()
            if kind != "answered"
        ]
        if parts:
            print(f"{name}: " + "; ".join([f"{len(kinds['answered'])} answered", *parts]))
