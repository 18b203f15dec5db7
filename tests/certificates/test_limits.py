"""Bad input under limits of memory and processor time: a message, and exit code 2."""

import json
import os
import resource
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import feta_check
from feta import Threshold
from feta.model import Model
from tests.certificates.certify import certify, claims_of, seal
from tests.certificates.test_claims import PEOPLE, SPACE, hidden
from tests.certificates.test_files import digest

# The aim is five seconds and 300 MB. The limit of time is for slow processors.
MEMORY, SECONDS = 300 * 10**6, 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return certify(tmp_path, Model(SPACE, hidden(), Threshold(0.0)), PEOPLE[:1])


def check(folder: Path) -> tuple[int, str]:
    """Run the checker with nothing but the standard library; return exit code and message."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))

    path = {"PYTHONPATH": str(Path(feta_check.__file__).parents[1])}
    command = [sys.executable, "-S", "-P", "-m", "feta_check", str(folder)]
    done = subprocess.run(
        command, env=path, capture_output=True, text=True, check=False, preexec_fn=limit
    )
    return done.returncode, done.stderr


def grow(name: str) -> Callable[[Path], None]:
    """Make a file 10 GB long, without writing them."""
    return lambda folder: os.truncate(folder / name, 10**10)


def write(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


def model_with(description: bytes) -> Callable[[Path], object]:
    """Replace the description of the model, and name its digest in the header."""

    def change(folder: Path) -> None:
        path = folder / "model.feta"
        old = path.read_bytes()
        size = int.from_bytes(old[:8], "little")
        header = json.loads(old[8 : 8 + size])
        header["__metadata__"]["feta-model"] = description.decode()
        text = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + old[8 + size :])
        seal(folder, claims_of(folder), model_sha256=digest(path))

    return change


def array_of(shape: list[int]) -> Callable[[Path], object]:
    entry = {"dtype": "F64", "shape": shape, "data_offsets": [0, 0]}
    header = {"__metadata__": {"feta-model": "{}"}, "first.bias": entry}
    text = json.dumps(header).encode()
    return write("model.feta", struct.pack("<Q", len(text)) + text)


def other_version(folder: Path) -> None:
    path = folder / "certificate.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"version":1', b'"version":2', 1))


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "a certificate of 10 GB": (grow("certificate.jsonl"), "more than 1048576 bytes"),
    "a schema of 10 GB": (grow("schema.json"), "too large"),
    "a model of 10 GB": (grow("model.feta"), "too large"),
    "a header of 10 GB": (
        write("model.feta", struct.pack("<Q", 10**10) + b"{}"), "a header of 10000000000 bytes"
    ),
    "a header of 2^64 bytes": (write("model.feta", b"\xff" * 16), "expected a .feta file"),
    "an empty model": (write("model.feta", b""), "expected a .feta file"),
    "an empty certificate": (write("certificate.jsonl", b""), "no valid JSON"),
    "one line": (write("certificate.jsonl", b"{}\n"), "no valid JSON"),
    "a truncated certificate": (
        lambda folder: os.truncate(folder / "certificate.jsonl", 700), "truncated"
    ),
    "a truncated model": (lambda folder: os.truncate(folder / "model.feta", 900), "model"),
    "another version": (other_version, "expected a feta-certificate of version 1"),
    "another version of models": (
        model_with(b'{"version":3}'), "got version 3 of a .feta file; expected 1 or 2"
    ),
    "a nested certificate": (
        write("certificate.jsonl", b"{}\n" + b"[" * 2**19 + b"\n"), "no valid JSON"
    ),
    "a nested header": (
        write("model.feta", struct.pack("<Q", 2**22) + b"[" * 2**22), "no valid JSON"
    ),
    "a nested description": (
        model_with(b'{"a":' * 50_000 + b"0" + b"}" * 50_000), "no valid JSON"
    ),
    "a nested rule": (
        model_with(b'{"rule":' + b"[" * 900 + b"]" * 900 + b',"version":1}'), "schema"
    ),
    "a long number": (model_with(b'{"version":' + b"9" * 5000 + b"}"), "no valid JSON"),
    "a description of empty lists": (
        model_with(b'{"space":[' + b"[]," * 2**20 + b"[]],\"version\":1}"), "schema"
    ),
    "an array of 10^12 numbers": (array_of([10**6, 10**6]), "invalid array 'first.bias'"),
    "an array of 10^9 empty rows": (array_of([10**9, 0]), "invalid array 'first.bias'"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_within_limits(folder: Path, name: str) -> None:
    change, words = BAD[name]
    change(folder)
    code, message = check(folder)
    assert (code, message[:12]) == (2, "feta_check: "), message
    assert words in message
    assert message.count("\n") == 1
    assert len(message) < 600


def test_good_input_is_within_the_limits(folder: Path) -> None:
    assert check(folder) == (0, "")
