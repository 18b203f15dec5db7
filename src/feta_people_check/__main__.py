"""Check a certificate: python -m feta_people_check MODEL.feta CERTIFICATE [--sample N]."""

import argparse
import sys
from fractions import Fraction
from lzma import LZMAError
from pathlib import Path

from feta_people_check.check import Check
from feta_people_check.reading import Refused, expect, read

# What reading of damaged files may raise, in addition to `Refused`.
DAMAGE = (
    *(Refused, ArithmeticError, AttributeError, EOFError, LookupError, LZMAError, MemoryError),
    *(OSError, RecursionError, TypeError, ValueError),
)


def main(arguments: list[str] | None = None) -> int:
    """Return 0 if the certificate is accepted, 1 if not, 3 if only a sample was looked at."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("certificate", type=Path)
    parser.add_argument("--sample", type=int, help="look at some leaves only; this proves nothing")
    options = parser.parse_args(arguments)
    try:
        words = verify(options.model, options.certificate, options.sample)
    except DAMAGE as why:
        print(f"not accepted: {type(why).__name__}: {why}")
        return 1
    print(words)
    return 0 if options.sample is None else 3


def verify(model: Path, certificate: Path, sample: int | None = None) -> str:
    """Return what is proved, in words; raise if the certificate is not accepted."""
    claim = read(model, certificate)
    fair, unfair = (Fraction(claim.header["claims"][name]) for name in ("fair", "unfair"))
    expect(fair >= 0 and unfair >= 0 and fair + unfair <= 1, "impossible claims")
    check = Check(claim)
    check.run(sample)
    if sample is not None:
        return f"{check.n_leaves} leaves, of which a sample can be read. A sample proves nothing."
    expect(check.fair >= fair, f"the leaves prove {float(check.fair)} fair; claimed {float(fair)}")
    proved = float(check.unfair)
    expect(check.unfair >= unfair, f"the leaves prove {proved} unfair; claimed {float(unfair)}")
    people = claim.header["population"]
    condition = people["condition"] or "none"
    return (
        f"accepted: {check.n_leaves} leaves prove that of the people of the population "
        f"({people['kind']}; condition: {condition}; the weights of the certificate), at least "
        f"{float(fair):.10%} are treated fairly and at least {float(unfair):.10%} unfairly"
    )


if __name__ == "__main__":
    sys.exit(main())
