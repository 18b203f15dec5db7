"""Recording of the golden results: `python -m tests.golden.record`.

It overwrites `tests/golden/expected`. Review the difference before a commit: each changed number
is a changed result.
"""

import json
import tempfile
import warnings
from pathlib import Path

from tests.golden.api_cases import API_CASES
from tests.golden.command_cases import command_results
from tests.golden.comparison import Json
from tests.golden.program_cases import PROGRAM_CASES

EXPECTED = Path(__file__).parent / "expected"


def expected(name: str) -> Json:
    """Read the recorded results of a case."""
    return json.loads((EXPECTED / f"{name}.json").read_text(encoding="utf-8"))


def write(name: str, results: Json) -> None:
    """Record the results of a case."""
    text = json.dumps(results, indent=1) + "\n"
    (EXPECTED / f"{name}.json").write_text(text, encoding="utf-8", newline="\n")


def record() -> None:
    """Record all cases."""
    EXPECTED.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, results in command_results(Path(folder)).items():
            write(f"command_{name}", results)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, case in {**API_CASES, **PROGRAM_CASES}.items():
            write(name, case())


if __name__ == "__main__":
    record()
