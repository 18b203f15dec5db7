import hashlib
import itertools
import json
import os
import runpy
import shutil
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from feta import Threshold, Tolerance
from feta.auditing.auditor import Auditor
from feta.auditing.block import Block, UnreadRow
from feta.auditing.certify import Certification, CertifiedFacts
from feta.auditing.finding import AuditFault, Finding
from feta.errors import DomainError
from feta.model import Model
from tests.certificates.certify import certify, check, check_with_javascript, claims_of, seal
from tests.certificates.test_claims import PEOPLE, SPACE, hidden


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificate")
    return certify(folder, Model(SPACE, hidden(), Threshold(0.0)), PEOPLE)


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return shutil.copytree(original, tmp_path / "audit")


def edited(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


def lines_of(text: bytes, chosen: tuple[int, ...]) -> bytes:
    lines = text.splitlines(keepends=True)
    return b"".join(lines[index] for index in chosen)


CERTIFICATES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "truncated in a claim": lambda text: text[: len(text) // 2],
    "without its end": lambda text: b"".join(text.splitlines(keepends=True)[:-1]),
    "without the last line feed": lambda text: text[:-1],
    "a claim removed": lambda text: lines_of(text, (0, 1, 3, 4)),
    "claims swapped": lambda text: lines_of(text, (0, 2, 1, 3, 4)),
    "a line added": lambda text: text + b"{}\n",
    "another version": lambda text: text.replace(b'"version":1', b'"version":2', 1),
    "another format": lambda text: text.replace(b"feta-certificate", b"feta-certificatf", 1),
    "deeply nested": lambda text: b"[" * 60_000 + b"\n" + text,
    "a very long line": lambda text: text[:-1] + b" " * 2**21 + b"\n",
    "a long header": lambda _: b" " * 2**20 + b"\n",
    "a root of zeros": lambda text: text[:-67] + b"0" * 64 + text[-3:],
    "a root of fs": lambda text: text[:-67] + b"f" * 64 + text[-3:],
    "a space": lambda text: text.replace(b'{"claims":', b'{ "claims":', 1),
    "a key twice": lambda text: text.replace(b'{"claims":', b'{"claims":3,"claims":', 1),
    "NaN": lambda text: text.replace(b'"claims":3', b'"claims":NaN', 1),
    "a fraction": lambda text: text.replace(b'"claims":3', b'"claims":3.0', 1),
    "not ASCII": lambda text: text.replace(b"fair", b"f\xe4ir", 1),
    "no text": lambda _: b"\0" * 1000,
    "a boolean": lambda text: text.replace(b'"complete":true', b'"complete":1', 1),
}  # fmt: skip


@pytest.mark.parametrize("name", CERTIFICATES)
def test_a_damaged_certificate_is_unreadable(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    edited(folder / "certificate.jsonl", CERTIFICATES[name])
    assert check(folder) == 2
    assert capsys.readouterr().err.startswith("feta_check: ")
    assert check_with_javascript(folder) in (2, None)


def _header(change: Callable[[dict[str, object]], object]) -> Callable[[bytes], bytes]:
    def edit(content: bytes) -> bytes:
        size = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + size])
        change(header)
        text = json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + content[8 + size :]

    return edit


MODELS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "a header of 10 GB": lambda content: struct.pack("<Q", 10**10) + content[8:],
    "truncated": lambda content: content[:-8],
    "bytes added": lambda content: content + b"\0" * 8,
    "deeply nested": lambda _: struct.pack("<Q", 2**20) + b"[" * 2**20,
    "a tensor of 10^12 numbers": _header(
        lambda header: header["first.bias"].update(shape=[10**6, 10**6])  # type: ignore[attr-defined]
    ),
    "overlapping tensors": _header(
        lambda header: header["first.bias"].update(data_offsets=[8, 56])  # type: ignore[attr-defined]
    ),
    "no description": _header(lambda header: header.pop("__metadata__")),
    "another type": _header(
        lambda header: header["first.bias"].update(dtype="F32")  # type: ignore[attr-defined]
    ),
    "a tensor is missing": _header(lambda header: header.pop("first.bias")),
    "NaN": lambda content: content[:-8] + struct.pack("<d", float("nan")),
    "infinity": lambda content: content[:-8] + struct.pack("<d", float("inf")),
    "not JSON": lambda content: content[:8] + b"\xff" + content[9:],
}


@pytest.mark.parametrize("name", MODELS)
def test_a_damaged_model_is_unreadable(folder: Path, name: str) -> None:
    edited(folder / "model.feta", MODELS[name])
    assert check(folder) == 2
    seal(folder, claims_of(folder), model_sha256=digest(folder / "model.feta"))
    assert check(folder) == 2
    assert check_with_javascript(folder) in (2, None)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_file_that_is_too_large_is_not_read(folder: Path) -> None:
    for name in ("model.feta", "schema.json"):
        with (folder / name).open("ab") as stream:
            os.truncate(stream.fileno(), 2**34)  # sparse
        assert check(folder) == 2


def test_a_certificate_without_claims_is_one(folder: Path) -> None:
    seal(folder, [])
    assert check(folder) == 0
    assert check_with_javascript(folder) in (0, None)


def test_missing_files_are_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "schema.json").unlink()
    assert check(folder) == 2
    assert "schema.json" in capsys.readouterr().err
    assert check(folder / "nothing") == 2


def test_another_schema_is_unreadable(folder: Path) -> None:
    edited(folder / "schema.json", lambda text: text.replace(b'"high":', b'"higi":', 1))
    assert check(folder) == 2
    seal(folder, claims_of(folder), schema_sha256=digest(folder / "schema.json"))
    assert check(folder) == 2
    assert check_with_javascript(folder) in (2, None)


@pytest.mark.parametrize("name", ["rule_sha256", "votes_sha256", "model_sha256"])
def test_another_digest_is_unreadable(folder: Path, name: str) -> None:
    seal(folder, claims_of(folder), **{name: "0" * 64})
    assert check(folder) == 2


@pytest.mark.parametrize("header", [{"relation": "another"}, {"provenance": "sampled"}])
def test_what_this_program_does_not_know_is_not_proved(
    folder: Path, header: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    seal(folder, claims_of(folder), **header)
    assert check(folder) == 3
    out = capsys.readouterr().out
    assert "Re-proved: 0. False: 0. Not checked: 3." in out
    assert "Every claim was re-proved" not in out


def test_without_the_model_nothing_is_proved(folder: Path) -> None:
    model = (folder / "model.feta").rename(folder.parent / "elsewhere.feta")
    assert check(folder) == 3
    assert check(folder, "--model", str(model)) == 0
    assert check(folder, "--model", str(folder / "schema.json")) == 2


def test_a_sample_leaves_claims_unchecked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(folder, "--sample", "1", "--quiet") == 3
    assert "Re-proved: 1. False: 0. Not checked: 2." in capsys.readouterr().out


def test_a_claim_that_takes_too_long_is_not_checked(folder: Path) -> None:
    assert check(folder, "--seconds", "-1") == 3


def test_a_false_claim_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claims = claims_of(folder)
    seal(
        folder, [claims[0] | {"decision": 1 - claims[0]["decision"], "id": "\x1b[31m"}, *claims[1:]]
    )
    assert check(folder) == 1
    assert "row 1 (?[31m): FALSE: " in capsys.readouterr().out


def test_the_end_line_must_count_the_verdicts(folder: Path) -> None:
    claims = claims_of(folder)
    old = (folder / "certificate.jsonl").read_bytes()
    wrong = old.replace(b'"undecided":0', b'"undecided":1', 1)
    for count in range(1, 4):
        wrong = wrong.replace(f'"unfair":{count}'.encode(), f'"unfair":{count - 1}'.encode(), 1)
    (folder / "certificate.jsonl").write_bytes(wrong)
    assert len(claims) == 3
    assert check(folder) == 2


def test_a_row_that_was_not_read_claims_nothing(tmp_path: Path) -> None:
    model = Model(SPACE, hidden(), Tolerance(0.5))
    auditor = Auditor(model)
    unread = {0: UnreadRow(DomainError("no income"))}
    block = Block(0, PEOPLE[:1], (None, None), ("a", "b"), unread)
    lost = Finding(0, reason=AuditFault.WORKER_DIED)
    with Certification(tmp_path, auditor, CertifiedFacts("0" * 64)) as certification:
        certification.write(block.audited([lost]))
        certification.finish(complete=False)
    assert [claim["verdict"] for claim in claims_of(tmp_path)] == ["not audited", "undecided"]
    assert check(tmp_path) == 0
    assert check_with_javascript(tmp_path) in (0, None)


def test_without_the_model_a_row_that_was_not_read_claims_nothing(tmp_path: Path) -> None:
    auditor = Auditor(Model(SPACE, hidden(), Threshold(0.5)))
    block = Block(0, PEOPLE[:0], (None,), ("a",), {0: UnreadRow(DomainError("no income"))})
    facts = CertifiedFacts("0" * 64, with_model=False)
    with Certification(tmp_path, auditor, facts) as certification:
        certification.write(block.audited([]))
        certification.finish(complete=False)
    assert check(tmp_path) == 0


def test_a_long_check_shows_its_progress(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count(0, 3)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    assert check(folder) == 0
    assert "2 of 3 claims" in capsys.readouterr().err
    assert check(folder, "--json") == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["results"] == {"re-proved": 3}
    assert not printed.err


def test_the_module_is_a_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["feta_check", str(folder), "--quiet"])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_module("feta_check", run_name="__main__")
    assert stopped.value.code == 0


def test_an_interrupted_certificate_leaves_no_files(tmp_path: Path) -> None:
    auditor = Auditor(Model(SPACE, hidden(), Threshold(0.0)))
    with Certification(tmp_path, auditor, CertifiedFacts()):
        assert len(list(tmp_path.iterdir())) == 3
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("row", [0, 1])
def test_a_complete_certificate_leaves_out_no_row(folder: Path, row: int) -> None:
    claims = claims_of(folder)
    del claims[row]
    seal(folder, claims)
    assert check(folder) == 2
    assert check_with_javascript(folder) in (None, 2)
