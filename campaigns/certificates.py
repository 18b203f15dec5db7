"""Campaign of certificates: valid ones must be accepted, and no false claim may be.

    python -m campaigns.certificates [--models 1000] [--mutants 3000] [--seed 0] [--node node]

Random networks and tree ensembles with every rule, activation and kind of column are audited; half
of the proofs are replaced by random trees of cuts. Two checkers that share no code re-prove the
certificates: `feta_check` and, with Node, `campaigns/javascript/feta_check.mjs`. Then mutants: bits
that flip, and lies under a valid seal. A false claim is one that contradicts the oracles, which
enumerate the counterparts. No checker may accept one, and the two must never contradict each other.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from campaigns.certificate_mutants import MUTATIONS, Sealed, flip_bit
from campaigns.certificate_truth import Truth
from campaigns.result import finish
from feta.auditing.auditor import Auditor
from feta.auditing.block import blocks_in_memory
from feta.auditing.certify import Certification, CertifiedFacts
from feta.model import Model
from feta.space.vote_weights import VoteWeights
from feta_check.certificate import Certificate
from feta_check.claims import check_claim
from feta_check.model import Model as StoredModel
from feta_check.model import check_header
from feta_check.model_file import ModelFile
from feta_check.reading import Refuted, Unchecked, Unreadable, digest
from tests import forest_cases
from tests.strategies import EDGES, random_case

JAVASCRIPT = Path(__file__).parent / "javascript" / "feta_check.mjs"

# Folders that one process of Node checks.
BATCH = 200

# By row: "proved", "false" or "unchecked"; None: the files are unreadable.
Results = dict[int, str] | None


@dataclass(frozen=True)
class Case:
    """A random model, people, and the truth about them."""

    model: Model
    people: np.ndarray[tuple[int, int], np.dtype[np.float64]]
    weights: VoteWeights | None
    truth: Truth


def draw_case(rng: np.random.Generator) -> Case:
    """Draw a network or a tree ensemble."""
    edge = EDGES[rng.integers(len(EDGES))]
    if rng.random() < 0.3:
        forest = forest_cases.random_case(rng, edge)
        return Case(forest.model, forest.people, forest.weights, Truth.of_forest(forest))
    case = random_case(rng, edge, plain=bool(rng.random() < 0.2))
    truth = Truth.of_network(case.model, case.weights)
    return Case(case.model, case.people, case.weights, truth)


def certify(case: Case, folder: Path) -> None:
    """Audit the people and write the certificate."""
    auditor = Auditor(case.model, weights=case.weights)
    findings = auditor.audit(case.people)
    with Certification(folder, auditor, CertifiedFacts()) as certification:
        for block in blocks_in_memory(case.people, len(case.people)):
            certification.write(block.audited(findings))
        certification.finish(complete=True)


def check(folder: Path) -> Results:
    """Check a folder with `feta_check`, in this process."""
    try:
        certificate = Certificate(folder / "certificate.jsonl")
        schema = (folder / "schema.json").read_bytes()
        file = ModelFile(folder / "model.feta")
        if digest(schema) != certificate.header["schema_sha256"]:
            return None
        check_header(certificate.header, schema, file)
        model = StoredModel(file)
        if digest(model.votes.json) != certificate.header["votes_sha256"]:
            return None
        return {claim["row"]: _result(model, claim) for claim in certificate.claims()}
    except (Unreadable, Refuted):
        return None
    except Unchecked:
        return {}


def _result(model: StoredModel, claim: dict[str, Any]) -> str:
    try:
        check_claim(model, claim)
    except Refuted:
        return "false"
    except Unchecked:
        return "unchecked"
    return "proved"


def check_with_node(node: str, folders: list[Path]) -> list[Results]:
    """Check folders with the program in JavaScript."""
    results: list[Results] = []
    for start in range(0, len(folders), BATCH):
        part = [str(folder) for folder in folders[start : start + BATCH]]
        command = [node, str(JAVASCRIPT), "--json", *part]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            found = json.loads(line)
            results.append(None if found is None else {int(row): r for row, r in found.items()})
    return results


def judge(sealed: Sealed | None, results: Results, counts: Counter[str], who: str) -> None:
    """Count what a checker accepted; WRONG if a claim that it accepted is false."""
    if results is None:
        counts[f"{who}: unreadable"] += 1
        return
    for row, result in results.items():
        if result != "proved":
            counts[f"{who}: {result}"] += 1
        elif sealed is not None and sealed.holds(row):
            counts[f"{who}: accepted, true"] += 1
        else:
            counts[f"WRONG: {who} accepted a false claim"] += 1
            if sealed is not None:
                print(f"accepted: {sealed.kind}: {sealed.claim(row)}", file=sys.stderr)


def disagree(first: Results, second: Results) -> bool:
    """Return whether one checker accepts what the other refutes."""
    if first is None or second is None:
        either = first or second or {}
        return (first is None) != (second is None) and "proved" in either.values()
    return any({first[row], second.get(row)} == {"proved", "false"} for row in first)


def mutants(
    rng: np.random.Generator, cases: list[tuple[Case, Path]], count: int, root: Path
) -> Iterator[tuple[Path, Sealed | None]]:
    """Yield folders with mutants; without `Sealed`, no claim in them may be accepted."""
    for number in range(count):
        case, folder = cases[rng.integers(len(cases))]
        target = root / f"mutant{number}"
        shutil.copytree(folder, target)
        if rng.random() < 0.2:
            flip_bit(rng, target)
            yield target, None
            continue
        sealed = Sealed.read(target, case.truth)
        kind = list(MUTATIONS)[rng.integers(len(MUTATIONS))]
        other = cases[rng.integers(len(cases))]
        MUTATIONS[kind](rng, sealed, other[1])
        sealed.write(kind)
        yield target, sealed


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--mutants", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--node", default=shutil.which("node") or "")
    options = parser.parse_args()
    rng, counts, started = np.random.default_rng(options.seed), Counter[str](), time.perf_counter()
    if not options.node:
        print("Node is not installed: the second checker is not compared", file=sys.stderr)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        cases = []
        for number in range(options.models):
            folder = root / f"case{number}"
            folder.mkdir()
            case = draw_case(rng)
            certify(case, folder)
            sealed = Sealed.read(folder, case.truth)
            sealed.fix_salts(rng)
            if rng.random() < 0.5:
                sealed.grow_trees(rng)
            sealed.write("valid")
            cases.append((case, folder))
        folders = [folder for _, folder in cases]
        valid = [check(folder) for folder in folders]
        for (case, folder), results in zip(cases, valid, strict=True):
            _count_valid(case, folder, results, counts)
        planted = list(mutants(rng, cases, options.mutants, root))
        found = [check(folder) for folder, _ in planted]
        for (_, lie), results in zip(planted, found, strict=True):
            counts["mutants"] += 1
            judge(lie, results, counts, "feta_check")
        if options.node:
            both = folders + [folder for folder, _ in planted]
            theirs = check_with_node(options.node, both)
            for (_, lie), results in zip(planted, theirs[len(folders) :], strict=True):
                judge(lie, results, counts, "JavaScript")
            for folder, ours, other in zip(both, valid + found, theirs, strict=True):
                counts["folders checked by both"] += 1
                if disagree(ours, other):
                    counts["WRONG: the checkers contradict each other"] += 1
                    lines = (folder / "certificate.jsonl").read_bytes()
                    print(f"{folder.name}: {ours} and {other}: {lines!r}", file=sys.stderr)
    return finish(counts, started)


def _count_valid(case: Case, folder: Path, results: Results, counts: Counter[str]) -> None:
    counts["certificates"] += 1
    sealed = Sealed.read(folder, case.truth)
    for row in sealed.rows:
        counts["claims"] += 1
        if not sealed.holds(row):
            counts["WRONG: FETA wrote a false claim"] += 1
            print(f"false: {sealed.claim(row)}", file=sys.stderr)
        if results is None or results.get(row) != "proved":
            counts["WRONG: a valid claim was not accepted"] += 1
            print(f"not accepted: {results}: {sealed.claim(row)}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
