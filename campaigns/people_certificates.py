"""Campaign of changed certificates about everybody: none may be accepted.

    python -m campaigns.people_certificates [--mutants 1000] [--cases 20]

A mutant changes a claim, a byte of the unpacked certificate, a byte of the packed file, or a number
of the model. In half of those that change the tree, its digest is computed again: then the tree
must not prove less than the claims, which are true, because the model is the same.
"""

import argparse
import contextlib
import hashlib
import io
import json
import lzma
import sys
import tempfile
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np

from campaigns.result import finish
from feta.everybody.half_spaces.certificate import certificate
from feta.everybody.half_spaces.prover import HalfSpaces
from feta.io.model_file import model_bytes
from feta_people_check.__main__ import main as check
from tests.everybody_cases import small_case


def mutant(rng: np.random.Generator, packed: bytes, model: bytes) -> tuple[str, bytes, bytes]:
    """Change one thing; return what it was, the certificate, and the model."""
    line, _, tree = lzma.decompress(packed).partition(b"\n")
    header = json.loads(line)
    kind = str(rng.choice(["claim", "header", "tree", "tree and digest", "packed", "model"]))
    if kind == "claim":
        name = str(rng.choice(["fair", "unfair"]))
        more = Fraction(1, 2 ** int(rng.integers(1, 8)))
        header["claims"][name] = str(Fraction(header["claims"][name]) + more)
        line = json.dumps(header).encode()
    elif kind == "header":
        changed = bytearray(line)
        changed[rng.integers(len(changed))] ^= 1 << int(rng.integers(7))
        line = bytes(changed)
    elif kind.startswith("tree"):
        nodes = bytearray(tree)
        at = int(rng.integers(len(nodes)))
        if rng.random() < 0.3:
            del nodes[at]
        else:
            nodes[at] = int(rng.integers(256))
        tree = bytes(nodes)
        if kind == "tree and digest":
            header["tree"] = hashlib.sha256(tree).hexdigest()
            line = json.dumps(header).encode()
    elif kind == "model":
        numbers = bytearray(model)
        numbers[-1 - int(rng.integers(min(200, len(numbers) - 8)))] ^= 1 << int(rng.integers(8))
        return kind, packed, bytes(numbers)
    else:
        content = bytearray(packed)
        content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
        return kind, bytes(content), model
    return kind, lzma.compress(line + b"\n" + tree), model


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=1000)
    parser.add_argument("--cases", type=int, default=20)
    options = parser.parse_args()
    started, counts = time.perf_counter(), Counter[str]()
    seed = done = 0
    with tempfile.TemporaryDirectory() as folder:
        stored, path = Path(folder) / "model.feta", Path(folder) / "people.cert"
        while counts["mutants"] < options.mutants:
            seed += 1
            case = small_case(seed)
            proof = HalfSpaces.of(case.model, case.population)
            if isinstance(proof, str) or len(proof.parts) > 1:
                continue
            proof.step()
            proof.step(0.0)
            model = model_bytes(case.model)
            try:
                content = certificate(proof, case.population)
            except ValueError:
                continue
            done += 1
            rng = np.random.default_rng(seed)
            for _ in range(options.mutants // options.cases):
                kind, changed, other = mutant(rng, content, model)
                if (changed, other) == (content, model):
                    continue
                stored.write_bytes(other)
                path.write_bytes(changed)
                counts["mutants"] += 1
                with contextlib.redirect_stdout(io.StringIO()):
                    accepted = check([str(stored), str(path)]) == 0
                if not accepted:
                    counts[f"refused: {kind}"] += 1
                    continue
                claims = json.loads(lzma.decompress(changed).partition(b"\n")[0])["claims"]
                true = (
                    Fraction(claims["fair"]) <= case.fair
                    and Fraction(claims["unfair"]) <= case.unfair
                    and other == model
                )
                name = "another valid tree of true claims" if true else "WRONG: accepted"
                counts[f"{name}: {kind}"] += 1
    counts["certificates"] = done
    return finish(counts, started)


if __name__ == "__main__":
    sys.exit(main())
