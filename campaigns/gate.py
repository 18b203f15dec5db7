"""Campaign: no listed way of hiding a newly unfair person lets `feta diff` exit with 0.

    python -m campaigns.gate

Each way changes real audit folders, or the tables, models and options that they are made from. The
later model treats as many people unfairly as the earlier one, but other people. Honest comparisons run
as well: the gate must open for those that are not worse, and close with 1 for those that are.
"""

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from campaigns.gate_audits import Audits, run
from campaigns.gate_ways import HIDING, HONEST
from campaigns.result import finish


def main() -> int:
    """Run from the command line; exit 1 if any comparison ended with another code than it must."""
    started = time.perf_counter()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        audits = Audits(Path(name))
        for kind, ways in (("ways to hide", HIDING), ("honest comparisons", HONEST)):
            for way in ways:
                old, new = way.make(audits)
                code = run("diff", str(old), str(new), *way.options)
                counts[kind] += 1
                counts[f"{kind}, exit {code}"] += 1
                if code not in way.codes:
                    counts[f"WRONG exit {code}: {way.name}"] += 1
    return finish(counts, started)


if __name__ == "__main__":
    sys.exit(main())
