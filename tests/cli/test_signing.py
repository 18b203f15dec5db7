"""`feta keys`, `sign`, `receipt` and `check --key`."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import feta
from feta_check import command
from tests.certificates.certify import claims_of, seal
from tests.cli.commands import run
from tests.examples import linear

pytest.importorskip("cryptography")

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, x25519

AUDIT = ("audit", "loan.feta", "--data", "people.csv", "--id", "id", "--out", "out", "--certify")


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("signed")
    feta.save_model(linear(age=0.1, bias=-5.0), folder / "loan.feta")
    lines = [f"p{age},{age},female,50" for age in (18, 40, 90)]
    (folder / "people.csv").write_text("\n".join(["id,age,sex,income", *lines]) + "\n")
    for name in ("key", "other"):
        assert run("keys", "new", f"{name}.pem", cwd=folder).returncode == 0
    assert run(*AUDIT, "--sign", "key.pem", cwd=folder).returncode == 1
    return folder


@pytest.fixture
def folder(signed: Path, tmp_path: Path) -> Path:
    return shutil.copytree(signed, tmp_path / "work")


def check(folder: Path, *options: str) -> int:
    arguments = [str(folder / "out")]
    for option in options:
        arguments += ["--key", str(folder / option)]
    return command.main(arguments)


def test_a_signature_is_checked_with_its_key(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(folder, "key.pub") == 0
    assert "Certificate: the signature of the key " in capsys.readouterr().out
    assert check(folder, "other.pub", "key.pub") == 0
    capsys.readouterr()
    assert check(folder) == 3
    out = capsys.readouterr().out
    assert out.startswith("row 1 (p18): re-proved")
    assert "Certificate: the signature was not checked; name the key with --key.\n" in out
    assert check(folder, "other.pub") == 2


def test_a_stale_signature_is_refused(folder: Path) -> None:
    seal(folder / "out", claims_of(folder / "out")[:2])
    assert check(folder) == 2
    assert check(folder, "key.pub") == 2
    assert run("sign", "out", "--key", "key.pem", cwd=folder).returncode == 0
    assert check(folder, "key.pub") == 0


def test_another_header_makes_a_signature_stale(folder: Path) -> None:
    seal(folder / "out", claims_of(folder / "out"), data_sha256="0" * 64)
    assert check(folder, "key.pub") == 2


def test_a_removed_signature_is_missed(folder: Path) -> None:
    (folder / "out" / "certificate.dsse.json").unlink()
    assert check(folder) == 0
    assert check(folder, "key.pub") == 2


def test_a_later_audit_removes_the_signature(folder: Path) -> None:
    run(*AUDIT, cwd=folder)
    assert not (folder / "out" / "certificate.dsse.json").exists()
    run(*AUDIT, "--sign", "key.pem", cwd=folder)
    run(*AUDIT[:-1], cwd=folder)
    assert not (folder / "out" / "certificate.dsse.json").exists()


def test_keys_are_private_and_never_replaced(folder: Path) -> None:
    if os.name == "posix":
        assert stat.S_IMODE((folder / "key.pem").stat().st_mode) == 0o600
    shown = run("keys", "show", "key.pem", cwd=folder)
    assert shown.stdout == (folder / "key.pub").read_text()
    for name, message in (
        ("key.pem", "key.pub: the file exists: a key is never replaced"),
        ("key.pub", ".pub is the suffix of public keys"),
        ("missing/key.pem", "does not exist; create it first"),
    ):
        done = run("keys", "new", name, cwd=folder)
        assert done.returncode == 2
        assert message in done.stderr
    (folder / "key.pub").unlink()
    done = run("keys", "new", "key.pem", cwd=folder)
    assert "key.pem: the file exists: a key is never replaced" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_a_key_that_others_can_read_is_noticed(folder: Path) -> None:
    (folder / "key.pem").chmod(0o644)
    done = run("sign", "out", "--key", "key.pem", cwd=folder)
    assert done.returncode == 0
    assert "other users of this machine can read this private key" in done.stderr


def test_what_is_no_key_is_refused_before_the_audit(folder: Path) -> None:
    def write(name: str, key: object, encryption: object) -> None:
        content = key.private_bytes(  # type: ignore[attr-defined]
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
        )
        (folder / name).write_bytes(content)

    write("x25519.pem", x25519.X25519PrivateKey.generate(), serialization.NoEncryption())
    encryption = serialization.BestAvailableEncryption(b"secret")
    write("locked.pem", ed25519.Ed25519PrivateKey.generate(), encryption)
    shutil.rmtree(folder / "out")
    for name, message in (
        ("x25519.pem", "no private key: got X25519PrivateKey"),
        ("locked.pem", "no private key: got a key with a password"),
        ("key.pub", "no private key: got ValueError"),
        ("none.pem", "no such file; feta keys new writes a key"),
    ):
        done = run(*AUDIT, "--sign", name, cwd=folder)
        assert done.returncode == 2
        assert message in done.stderr
        assert not (folder / "out").exists()
    done = run(*AUDIT[:-1], "--sign", "key.pem", cwd=folder)
    assert "--sign needs --certify; add it, or omit --sign" in done.stderr


def test_a_receipt_contains_the_signature(folder: Path) -> None:
    done = run("receipt", "out", "--id", "p40", cwd=folder)
    assert done.returncode == 0
    assert "feta check receipt.json --model MODEL --key PUBLIC" in done.stdout
    shutil.copy(folder / "out" / "model.feta", folder / "model.feta")
    shutil.rmtree(folder / "out")
    checked = subprocess.run(
        [sys.executable, "-m", "feta", "check", "receipt.json",
         "--model", "model.feta", "--key", "key.pub"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stderr
    assert "  age (sensitive): 40.0\n" in checked.stdout
    assert "row 2 (p40): re-proved: unfair\n" in checked.stdout
    path = folder / "receipt.json"
    assert command.main([str(path), "--model", str(folder / "model.feta")]) == 3  # no key
    assert command.main([str(path), "--key", str(folder / "other.pub")]) == 2
    content = json.loads(path.read_bytes())
    content["signature"] = None
    path.write_bytes(json.dumps(content, sort_keys=True, separators=(",", ":")).encode() + b"\n")
    assert command.main([str(path), "--key", str(folder / "key.pub")]) == 2


def test_a_receipt_is_about_one_person(folder: Path) -> None:
    for arguments, message in (
        ((), "expected --id ID or --row NUMBER"),
        (("--id", "p40", "--row", "2"), "expected --id ID or --row NUMBER"),
        (("--id", "p41"), "no claim about id 'p41': got 3 claims"),
        (("--row", "1", "--out", "out/certificate.jsonl"), "--out is an input of this command"),
    ):
        done = run("receipt", "out", *arguments, cwd=folder)
        assert done.returncode == 2
        assert message in done.stderr
