"""`feta sign` and `feta keys`: keys, and the signatures of certificates."""

import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

from feta.cli.exit_code import ExitCode
from feta.cli.notices import notice
from feta.cli.output_path import check_file
from feta.errors import SchemaError
from feta.io.certificate_file import SIGNATURE
from feta.io.certificate_reader import read_certificate
from feta.io.envelope import certificate_statement
from feta.io.regular_file import atomic_write
from feta.io.sanitize import plain
from feta.io.signing_key import SigningKey, is_shared


def read_key(path: Path) -> SigningKey:
    """Read a private key; print a notice if other users may read the file."""
    key = SigningKey.read(path)
    if is_shared(path):
        notice(f"{plain(path)}: other users of this machine can read this private key; chmod 600")
    return key


def sign_certificate(folder: Path, key: SigningKey) -> None:
    """Sign the certificate in a folder, which must be intact."""
    certificate = read_certificate(folder)
    payload = certificate_statement(certificate.header, certificate.end)
    with atomic_write(folder / SIGNATURE) as part:
        part.write_bytes(key.signed(payload))


def run_sign(folder: Path, key_path: Path) -> ExitCode:
    """Sign a certificate."""
    key = read_key(key_path)
    sign_certificate(folder, key)
    console = Console(soft_wrap=True)
    console.print(Text(f"Wrote {plain(folder / SIGNATURE)}, signed with the key {key.key_id}."))
    return ExitCode.DONE


def run_new_key(path: Path) -> ExitCode:
    """Write a new private key, and its public key next to it."""
    public = path.with_suffix(".pub")
    check_file(path, [])
    if public == path:
        raise SchemaError(f"{path}: .pub is the suffix of public keys; expected another one: .pem")
    if public.exists():
        raise SchemaError(f"{public}: the file exists: a key is never replaced; name another file")
    key = SigningKey.new()
    key.write(path)
    public.write_text(key.public_pem, encoding="ascii")
    console = Console(soft_wrap=True)
    console.print(Text(f"Wrote {plain(path)}: the private key. Keep it secret, and keep a copy."))
    console.print(Text(f"Wrote {plain(public)}: the public key {key.key_id}. Publish it."))
    return ExitCode.DONE


def run_show_key(path: Path) -> ExitCode:
    """Print the public key of a private one; its id goes to standard error."""
    key = read_key(path)
    sys.stdout.write(key.public_pem)
    notice(f"key {key.key_id}")
    return ExitCode.DONE
