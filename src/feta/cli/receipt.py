"""`feta receipt`: one person's claim and its path in the certificate."""

from pathlib import Path

from rich.console import Console
from rich.text import Text

from feta.cli.exit_code import ExitCode
from feta.cli.output_path import check_file
from feta.errors import SchemaError
from feta.io.certificate_file import CERTIFICATE, SIGNATURE
from feta.io.receipt_file import receipt
from feta.io.regular_file import atomic_write
from feta.io.sanitize import plain


def run_receipt(folder: Path, name: str | None, row: int | None, out: Path) -> ExitCode:
    """Write the receipt of one person."""
    if (name is None) == (row is None):
        raise SchemaError("feta receipt is about one person; expected --id ID or --row NUMBER")
    check_file(out, [folder / CERTIFICATE, folder / SIGNATURE])
    content = receipt(folder, name=name, row=row)
    with atomic_write(out) as part:
        part.write_bytes(content)
    who = f"row {row}" if name is None else plain(name)
    console = Console(soft_wrap=True)
    console.print(
        Text(
            f"Wrote {plain(out)}: the claim about {who}, which contains this person's data and "
            "nobody else's."
        )
    )
    signed = (folder / SIGNATURE).exists()
    key = " --key PUBLIC" if signed else ""
    console.print(Text(f"Check it with: feta check {plain(out)} --model MODEL{key}"))
    return ExitCode.DONE
