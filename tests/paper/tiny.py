"""A protocol that takes seconds: few rows, few epochs."""

import json
from pathlib import Path
from typing import Any

from feta_paper.protocol import Protocol

TINY = Protocol(
    "german",
    learning_rates=(1e-2,),
    batch_sizes=(128,),
    epochs=2,
    fair_epochs=2,
    own_epochs=2,
    lcifr_epochs=2,
    certified=3,
    patience=2.0,
    quick=True,
    rows=300,
)


def timeless(path: Path) -> dict[str, Any]:
    """Read results without everything that depends on the speed of the machine."""
    results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    del results["times"]
    # A solver on a busy machine may exceed its time limit.
    results["missing"] = {
        key: reason for key, reason in results["missing"].items() if "milp" not in key
    }
    return results
