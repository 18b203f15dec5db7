"""Campaign of evidence: the checker proves every verdict about German credit, and no false one.

    python -m campaigns.evidence [--people 1000]

The engine `lattice` answers for everybody (proofs by enumeration), the engine `milp` for a tenth
(proofs by bounds). The checker must accept every verdict. It must reject the same proofs with one
counterpart fewer or more, with any one leaf removed or added, or about somebody else, and proofs
that somebody is treated fairly who is not.
"""

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from campaigns.result import finish
from feta import CertificateError, Fair, Unfair, WorstAt, datasets
from feta.api import verify_many
from feta.checker.prove import prove
from feta.cli.demo import train_model
from feta.query import PersonQuery
from feta.verdict.certificate import BoundsProof, Certificate, Cut, LatticeProof, Proof
from feta.verdict.verdict import Verdict

# The engine `milp` answers for one of so many people, but for at least so many people.
MILP_EVERY, MILP_LEAST = 10, 10


def altered_proofs(proof: Proof) -> Iterator[tuple[str, Proof]]:
    """Yield proofs that do not cover all counterparts, or cover more than there are."""
    if isinstance(proof, LatticeProof):
        yield "one counterpart removed", LatticeProof(proof.counterparts - 1)
        yield "one counterpart added", LatticeProof(proof.counterparts + 1)
        return
    for place, cut in enumerate(proof.cuts):
        if cut is None:
            before, after = proof.cuts[:place], proof.cuts[place + 1 :]
            yield "one leaf removed", replace(proof, cuts=(*before, *after))
            yield "one leaf added", replace(proof, cuts=(*before, None, None, *after))


def false_claims(
    query: PersonQuery, verdict: Verdict, *, n_counterparts: int, other: PersonQuery
) -> Iterator[tuple[str, Certificate | Verdict]]:
    """Yield claims about a person that are false, or that belong to another person."""
    if isinstance(verdict, Fair):
        certificate = verdict.certificate
        for name, proof in altered_proofs(certificate.proof):
            yield name, replace(certificate, proof=proof)
        yield "another person", replace(certificate, query_digest=other.digest)
    if isinstance(verdict, Unfair):
        whole: tuple[Cut | None, ...] = (None,)
        for claim in (LatticeProof(n_counterparts), BoundsProof(whole)):
            yield "unfair, called fair", Certificate(query.digest, "forger", claim)


def check_verdicts(
    queries: list[WorstAt], engine: str, counts: Counter[str], seconds: defaultdict[str, float]
) -> None:
    """Prove the verdicts of an engine, then claim what is false."""
    started = time.process_time()
    verdicts = verify_many(queries, engine=engine)
    seconds[f"{engine}: answers"] += time.process_time() - started
    n_counterparts = queries[0].model.space.lattice.size
    for row, (query, verdict) in enumerate(zip(queries, verdicts, strict=True)):
        kind = f"{engine}: {type(verdict).__name__}"
        if isinstance(verdict, Fair):
            kind += f" ({type(verdict.certificate.proof).__name__})"
        started = time.process_time()
        counts[kind if _is_proved(verdict, query) else f"WRONG rejected: {kind}"] += 1
        seconds[f"{kind}: proof"] += time.process_time() - started
        claims = false_claims(query, verdict, n_counterparts=n_counterparts, other=queries[row - 1])
        for name, claim in claims:
            result = "WRONG accepted" if _is_proved(claim, query) else "rejected"
            counts[f"{result}: {engine}, {name}"] += 1


def _is_proved(evidence: Certificate | Verdict, query: PersonQuery) -> bool:
    try:
        prove(evidence, query)
    except CertificateError:
        return False
    return True


def main() -> int:
    """Run from the command line; exit 1 on any mistake."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=1000)
    options = parser.parse_args()
    started = time.perf_counter()
    dataset = datasets.load("german")
    people = dataset.space.encode(dataset.frame)
    model = train_model(dataset, people, np.arange(len(people)) % 5 != 0, seed=0)
    queries = WorstAt.each(model, people[: options.people])
    counts: Counter[str] = Counter()
    seconds: defaultdict[str, float] = defaultdict(float)
    check_verdicts(queries, "lattice", counts, seconds)
    n_milp = max(MILP_LEAST, len(queries) // MILP_EVERY)
    check_verdicts(queries[:n_milp], "milp", counts, seconds)
    for name, total in sorted(seconds.items()):
        n_verdicts = counts[name.removesuffix(": proof")]
        each = f", {1000 * total / n_verdicts:.1f} ms each" if n_verdicts else ""
        print(f"{name}: {total:.2f} s of processor time{each}")
    for engine, proof in (("lattice", "LatticeProof"), ("milp", "BoundsProof")):
        if not counts[f"{engine}: Fair ({proof})"]:
            counts[f"WRONG no proof by {engine}"] += 1
    return finish(counts, started)


if __name__ == "__main__":
    sys.exit(main())
