"""Campaign of the gate: `feta diff` never exits with 0 if a newly unfair person is hidden.

    python -m campaigns.gate

Each way to hide changes real audit folders, or the tables, models and options that they come from.
The later model is unfair to as many people as the earlier one, but to other people. Honest
comparisons run as well: `feta diff` must exit with 0 if the later model is not worse, and with 1 if
it is.
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
    """Run from the command line; exit 1 if any comparison has an unexpected exit code."""
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
