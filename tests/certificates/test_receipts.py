"""Receipts and signatures of whole certificates: every change is refused by the checker."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from feta import Threshold
from feta.errors import DomainError, SchemaError
from feta.io.canonical_json import canonical
from feta.io.certificate_file import MerkleTree
from feta.io.receipt_file import merkle_path, receipt
from feta.model import Model
from feta_check import receipts
from feta_check.reading import Unreadable
from tests.certificates.certify import certify, check, claims_of, seal
from tests.certificates.test_claims import PEOPLE, SPACE, hidden

Json = dict[str, Any]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certify(
        tmp_path_factory.mktemp("receipts"), Model(SPACE, hidden(), Threshold(0.0)), PEOPLE
    )


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return shutil.copytree(original, tmp_path / "audit")


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 9, 13])
def test_a_path_leads_to_the_root_and_to_no_other(count: int) -> None:
    lines = [b"%d" % number for number in range(count)]
    tree = MerkleTree()
    for line in lines:
        tree.add(line)
    leaves = [hashlib.sha256(b"\0" + line).digest() for line in lines]
    for index, line in enumerate(lines):
        path: list[Any] = [node.hex() for node in merkle_path(leaves, index)]
        assert receipts.root_of(line, index, count, path) == tree.root()
        for wrong in (path[:-1], [*path, "0" * 64], ["0" * 64, *path[1:]]):
            if wrong != path:
                assert receipts.root_of(line, index, count, wrong) != tree.root()
        assert receipts.root_of(b"other", index, count, path) != tree.root()
        others = [receipts.root_of(line, n, count, path) for n in range(count) if n != index]
        assert tree.root() not in others


def written(folder: Path, row: int) -> Path:
    path = folder.parent / "receipt.json"
    path.write_bytes(receipt(folder, row=row))
    return path


def edited(path: Path, change: Callable[[Json], object]) -> Path:
    content = json.loads(path.read_bytes())
    change(content)
    path.write_bytes(canonical(content) + b"\n")
    return path


def test_a_receipt_is_re_proved_with_the_model(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for row in (1, 2, 3):
        path = written(folder, row)
        assert check(path, "--model", str(folder / "model.feta")) == 0
        out = capsys.readouterr().out
        assert f"row {row}: re-proved: {claims_of(folder)[row - 1]['verdict']}\n" in out
        assert " (sensitive): " in out
        assert "Compare this seal with the one that the auditor published" in out


def test_without_the_model_only_the_membership_is_checked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(folder, 1)
    assert check(path) == 3
    assert "The claim itself was not proved: only its membership was checked.\n" in (
        capsys.readouterr().out
    )
    assert check(path, "--json") == 3
    assert json.loads(capsys.readouterr().out)["results"] == {"not checked": 1}


def test_a_receipt_has_the_data_of_one_person(folder: Path) -> None:
    content = json.loads(written(folder, 2).read_bytes())
    others = [claim["salt"] for claim in claims_of(folder) if claim["row"] != 2]
    assert content["claim"]["row"] == 2
    assert not any(salt in json.dumps(content) for salt in others)


CHANGES: dict[str, Callable[[Json], object]] = {
    "the verdict": lambda it: it["claim"].update(verdict="undecided"),
    "another verdict": lambda it: it["claim"].update(verdict="good"),
    "the decision": lambda it: it["claim"].update(decision=1 - it["claim"]["decision"]),
    "the person": lambda it: it["claim"]["person"].reverse(),
    "the salt": lambda it: it["claim"].update(salt="0" * 32),
    "no row": lambda it: it["claim"].pop("row"),
    "the path": lambda it: it["path"].reverse(),
    "a hash": lambda it: it["path"].__setitem__(0, "0" * 64),
    "a short hash": lambda it: it["path"].__setitem__(0, "00"),
    "capital digits": lambda it: it["path"].__setitem__(0, it["path"][0].upper()),
    "no hash": lambda it: it["path"].__setitem__(0, 1),
    "no path": lambda it: it.update(path=[]),
    "a path of another kind": lambda it: it.update(path={}),
    "a long path": lambda it: it.update(path=it["path"] * 40),
    "the index": lambda it: it.update(index=1),
    "an index outside": lambda it: it.update(index=3),
    "an index of another kind": lambda it: it.update(index=True),
    "the root": lambda it: it["end"].update(root="0" * 64),
    "the header": lambda it: it["header"].update(date="2000-01-01"),
    "a field of the header": lambda it: it["header"].pop("date"),
    "the version of the header": lambda it: it["header"].update(version=2),
    "the schema": lambda it: it["schema"].update(outcomes=["x", "y"]),
    "a field more": lambda it: it.update(more=1),
    "the version": lambda it: it.update(version=2),
    "no object": lambda it: it.update(claim=[]),
    "a signature of another kind": lambda it: it.update(signature=[]),
    "a signature without content": lambda it: it.update(signature={}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_receipt_is_refused(folder: Path, name: str) -> None:
    model = str(folder / "model.feta")
    path = edited(written(folder, 1), CHANGES[name])
    assert check(path) == 2
    assert check(path, "--model", model) == 2


def test_an_index_is_a_number_of_a_claim(folder: Path) -> None:
    path = edited(written(folder, 2), lambda it: it.update(index=True))  # True equals 1
    assert check(path) == 2
    seal(folder, claims_of(folder)[:1])
    for index, code in ((0, 3), (1, 2), (-1, 2)):  # without a path, all lead to the root
        path = edited(written(folder, 1), lambda it, index=index: it.update(index=index))  # type: ignore[misc]
        assert check(path) == code


def test_a_receipt_of_another_audit_is_refused(folder: Path, tmp_path: Path) -> None:
    model = Model(SPACE, hidden(), Threshold(0.0))
    other = certify(tmp_path / "other", model, PEOPLE)
    path = written(folder, 1)
    theirs = json.loads(receipt(other, row=1))
    seal = hashlib.sha256(canonical(theirs["end"])).hexdigest()
    assert check(path, "--model", str(folder / "model.feta"), "--seal", seal) == 2
    assert check(other, "--seal", seal) == 0
    assert check(folder, "--seal", seal) == 2
    edited(path, lambda it: it.update(end=theirs["end"]))
    assert check(path) == 2
    edited(path, lambda it: it.update(header=theirs["header"]))
    assert check(path) == 2


def test_the_seal_binds_the_number_of_claims_and_the_header(folder: Path) -> None:
    path = written(folder, 1)
    seal = receipts.Receipt(path).seal
    model = str(folder / "model.feta")
    assert check(path, "--model", model, "--seal", seal) == 0
    edited(path, lambda it: it["end"].update(claims=4))  # the path is the same
    assert check(path, "--model", model) == 0
    assert check(path, "--model", model, "--seal", seal) == 2
    path = written(folder, 1)

    def state_another_table(it: Json) -> None:
        it["header"]["data_sha256"] = "0" * 64
        it["end"]["header_sha256"] = hashlib.sha256(canonical(it["header"])).hexdigest()

    edited(path, state_another_table)
    assert check(path, "--model", model) == 0
    assert check(path, "--model", model, "--seal", seal) == 2


def test_a_false_claim_is_refuted_with_the_model(folder: Path) -> None:
    claims = claims_of(folder)
    claims[0]["decision"] = 1 - claims[0]["decision"]
    seal(folder, claims)
    assert check(written(folder, 1), "--model", str(folder / "model.feta")) == 1
    assert check(written(folder, 2), "--model", str(folder / "model.feta")) == 0


def test_a_receipt_is_checked_with_its_own_model_only(folder: Path) -> None:
    path = written(folder, 1)
    model = folder / "model.feta"
    model.write_bytes(model.read_bytes()[:-1] + b"\1")
    assert check(path, "--model", str(model)) == 2


def test_a_person_that_the_schema_does_not_describe_is_unreadable(folder: Path) -> None:
    claims = claims_of(folder)
    claims[0]["person"] = ["x"] * len(claims[0]["person"])
    seal(folder, claims)
    assert check(written(folder, 1)) == 2
    assert check(written(folder, 1), "--quiet") == 3
    (folder / "none").write_bytes(b"PK\3\4")
    with pytest.raises(Unreadable, match="got an archive; unpack it"):
        receipts.Receipt(folder / "none")


def test_a_person_must_be_named_unambiguously(folder: Path) -> None:
    with pytest.raises(DomainError, match="no claim about row 4: got 3 claims"):
        receipt(folder, row=4)
    with pytest.raises(DomainError, match=r"id '' occurs 3 times: in the rows 1, 2, 3; name one"):
        receipt(folder, name="")


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "a claim removed": lambda text: b"".join(text.splitlines(keepends=True)[::2]),
    "empty": lambda _: b"",
    "truncated": lambda text: text[:-1],
    "another version": lambda text: text.replace(b'"version":1', b'"version":2', 1),
    "a line too long": lambda text: text + b" " * 2**21,
}


@pytest.mark.parametrize("name", DAMAGES)
def test_no_receipt_is_written_of_a_damaged_certificate(folder: Path, name: str) -> None:
    path = folder / "certificate.jsonl"
    path.write_bytes(DAMAGES[name](path.read_bytes()))
    with pytest.raises(SchemaError, match="the certificate is not intact: got "):
        receipt(folder, row=1)


def test_the_folder_must_be_complete(folder: Path) -> None:
    (folder / "certificate.dsse.json").write_text("x")
    with pytest.raises(SchemaError, match="got no JSON; expected a signature"):
        receipt(folder, row=1)
    (folder / "schema.json").write_text("{}")
    with pytest.raises(SchemaError, match="a schema that does not belong to the certificate"):
        receipt(folder, row=1)
    (folder / "certificate.jsonl").unlink()
    with pytest.raises(SchemaError, match=r"got no certificate\.jsonl; expected a folder of feta"):
        receipt(folder, row=1)
