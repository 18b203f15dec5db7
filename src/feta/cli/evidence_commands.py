"""The commands `feta sign`, `receipt`, `bundle` and `keys`; they import what they need."""

from pathlib import Path
from typing import Annotated

import typer

AuditFolder = Annotated[Path, typer.Argument(help="Folder of feta audit --certify.")]
SecretKey = Annotated[Path, typer.Option("--key", help="Private key of feta keys new.")]

keys = typer.Typer(
    help="Keys that sign certificates and bundles.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@keys.command("new")
def new_key(
    path: Annotated[Path, typer.Argument(help="File for the private key, such as audit.pem.")],
) -> int:
    """Write a new private key, and its public key.

    The private key is an Ed25519 key without a password, in a PEM file that only you can read.
    Whoever has it can sign in your name. The public key has the suffix .pub; publish it.
    """
    from feta.cli.sign import run_new_key

    return run_new_key(path)


@keys.command("show")
def show_key(
    path: Annotated[Path, typer.Argument(help="Private key of feta keys new.")],
) -> int:
    """Print the public key of a private key."""
    from feta.cli.sign import run_show_key

    return run_show_key(path)


def sign(folder: AuditFolder, key: SecretKey) -> int:
    """Sign a certificate.

    The signature binds the claims, the model, the schema and the table. Any later change makes it
    invalid. feta check --key verifies it.
    """
    from feta.cli.sign import run_sign

    return run_sign(folder, key)


def receipt(
    folder: AuditFolder,
    name: Annotated[str | None, typer.Option("--id", help="The person's id.")] = None,
    row: Annotated[int | None, typer.Option(min=1, help="The person's row, from 1.")] = None,
    out: Annotated[Path, typer.Option(help="File to write.")] = Path("receipt.json"),
) -> int:
    """Write one person's claim, for this person.

    The file contains the claim with the person's data, and hashes that show that the claim belongs
    to the certificate. Nobody else's data can be derived from it. feta check receipt.json checks
    it; with --model, it re-proves the claim.
    """
    from feta.cli.receipt import run_receipt

    return run_receipt(folder, name, row, out)


def bundle(
    folder: AuditFolder,
    out: Annotated[Path, typer.Option(help="Archive to write: audit.zip.")],
    key: Annotated[
        Path | None, typer.Option("--sign", help="Private key of feta keys new.")
    ] = None,
    without_model: Annotated[
        bool, typer.Option("--without-model", help="Leave the model out.")
    ] = False,
    groups: Annotated[
        list[str] | None,
        typer.Option(help="Columns of ll144.csv: sex,race. By default the sensitive ones."),
    ] = None,
    selected: Annotated[
        str | None, typer.Option(help="Decision that selects a person; needed for several classes.")
    ] = None,
    unknown: Annotated[
        list[str] | None,
        typer.Option(help="Category that counts as unknown. May be repeated."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="The audited table, for columns that the schema lacks.")
    ] = None,
) -> int:
    """Write an audit and its evidence as one archive.

    It contains the report, the certificate, the model, the independent checker, a manifest, and
    drafts: a model card, impact ratios as for Local Law 144 of New York City, and sections 2(g) and
    3 of Annex IV of the EU AI Act. All facts come from the audit; gaps are marked. Equal files give
    an equal archive.
    """
    from feta.cli.bundle import BundleOptions, run_bundle
    from feta.cli.init import split_names

    names = split_names(groups)
    return run_bundle(
        BundleOptions(folder, out, key, without_model, names, selected, unknown or (), data)
    )
