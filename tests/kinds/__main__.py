"""`python -m tests.kinds`: examine all kinds of models, and write the page about them."""

import sys
import tempfile
import warnings
from pathlib import Path

from tests.extras import missing
from tests.kinds.catalogue import KINDS
from tests.kinds.examine import examine
from tests.kinds.page import PAGE, render


def main() -> int:
    """Write the page; return 1 if an answer is wrong."""
    absent = missing(*sorted({package for kind in KINDS for package in kind.packages}))
    if absent:
        print(f"the page needs all packages: {', '.join(absent)} is not installed")
        return 1
    warnings.simplefilter("ignore")  # small tables; counted models
    rows, wrong = [], []
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            examined = examine(kind, Path(folder))
        print(examined.row, flush=True)
        rows.append(examined.row)
        wrong += [f"{kind.family}, {kind.name}, {text}" for text in examined.wrong]
    print("\n".join(wrong) or f"{len(rows)} kinds, 0 wrong")
    PAGE.write_text(render(rows), encoding="utf-8")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
