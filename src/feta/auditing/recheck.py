"""Re-checking of certificates by an independent program, `feta_check`, in its own process.

Nothing here imports the checker: a mistake in this package must not reach it.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from feta.errors import SchemaError

# The results of claims, as the checker prints them.
RESULTS = ("re-proved", "FALSE", "not checked")


@dataclass(frozen=True, slots=True)
class CheckResult:
    """How many claims of a certificate were re-proved, are false, and were not checked."""

    re_proved: int
    false: int
    not_checked: int
    root: str  # of the Merkle tree over all claims

    @property
    def all_proved(self) -> bool:
        """Whether every claim was re-proved."""
        return not self.false and not self.not_checked


def check(
    folder: str | Path, *, model: str | Path | None = None, seconds: float | None = None
) -> CheckResult:
    """Re-prove the claims of a certificate with the independent checker.

    Parameters
    ----------
    folder
        Where `Audit.write` or `feta audit --certify` wrote the certificate.
    model
        The `.feta` file of the model, if the folder does not have it.
    seconds
        Limit on the time per claim.

    Raises
    ------
    SchemaError
        If the certificate is damaged, or does not fit its model and schema.
    """
    arguments = [*command(Path(folder), model=model, seconds=seconds), "--json"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    try:
        summary = json.loads(done.stdout)
        counts = [summary["results"].get(name, 0) for name in RESULTS]
        return CheckResult(counts[0], counts[1], counts[2], summary["root"])
    except ValueError:
        raise SchemaError(
            f"{folder}: the certificate cannot be checked: got "
            f"{done.stderr.strip().removeprefix('feta_check: ')!r}; expected what feta audit "
            "--certify wrote; certify the audit again"
        ) from None


def command(
    folder: Path,
    *,
    model: str | Path | None = None,
    keys: Sequence[Path] = (),
    seal: str | None = None,
    seconds: float | None = None,
    sample: int | None = None,
    quiet: bool = False,
) -> list[str]:
    """Return the command that checks a folder or a receipt."""
    # -P: a folder feta_check in the working directory must not replace the program.
    arguments = [sys.executable, "-P", "-m", "feta_check", str(folder)]
    options = {"--model": model, "--seal": seal, "--seconds": seconds, "--sample": sample}
    for name, value in options.items():
        arguments += [] if value is None else [name, str(value)]
    for key in keys:
        arguments += ["--key", str(key)]
    return [*arguments, "--quiet"] if quiet else arguments
