"""Manifests of bundles and DSSE envelopes of any form: what does not fit is unreadable."""

import base64
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from feta_check.reading import Unreadable
from feta_check.signatures import (
    MAX_SIGNATURES,
    PAYLOAD,
    Signature,
    check_manifest,
    check_signature,
)

FILES = {"audit/a.txt": b"a", "b.txt": b"bb", "feta_check/c.py": b""}


def write(folder: Path, manifest: object) -> None:
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    (folder / "manifest.json").write_text(text)


def manifest_of(files: dict[str, bytes]) -> dict[str, Any]:
    subject = [
        {"name": name, "digest": {"sha256": hashlib.sha256(content).hexdigest()}}
        for name, content in files.items()
    ]
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "predicateType": "urn:x-feta:bundle:1",
        "subject": subject,
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    write(tmp_path, manifest_of(FILES))
    return tmp_path


def test_a_folder_with_the_files_of_its_manifest_is_accepted(folder: Path) -> None:
    compiled = folder / "feta_check" / "__pycache__"
    compiled.mkdir()
    (compiled / "c.pyc").write_bytes(b"Python writes it")
    assert check_manifest(folder, []) == Signature("Manifest: not signed.")


MANIFESTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "no subject": lambda it: it.pop("subject"),
    "a subject of null": lambda it: it.update(subject=None),
    "files that are no objects": lambda it: it.update(subject=[1]),
    "a file without a digest": lambda it: it["subject"][0].pop("digest"),
    "a digest of null": lambda it: it["subject"][0].update(digest=None),
    "another digest": lambda it: it["subject"][0]["digest"].update(sha256="0" * 64),
    "a name that is a list": lambda it: it["subject"][0].update(name=[]),
    "another name": lambda it: it["subject"][0].update(name="c.txt"),
    "a file twice": lambda it: it["subject"].append(it["subject"][0]),
    "a file that is missing": lambda it: it["subject"].append({**it["subject"][0], "name": "d"}),
    "a file that is not listed": lambda it: it["subject"].pop(),
    "another type": lambda it: it.update(_type="https://in-toto.io/Statement/v2"),
    "another kind": lambda it: it.update(predicateType="urn:x-feta:certificate:1"),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_that_does_not_fit_is_unreadable(folder: Path, name: str) -> None:
    manifest = manifest_of(FILES)
    MANIFESTS[name](manifest)
    write(folder, manifest)
    with pytest.raises(Unreadable):
        check_manifest(folder, [])


def test_a_link_to_an_equal_file_is_refused(folder: Path) -> None:
    (folder / "b.txt").rename(folder.parent / "elsewhere.txt")
    (folder / "b.txt").symlink_to(folder.parent / "elsewhere.txt")
    with pytest.raises(Unreadable, match=r"b\.txt: the file is not in the manifest"):
        check_manifest(folder, [])
    (folder.parent / "elsewhere.txt").unlink()


def envelope_of(count: int) -> dict[str, Any]:
    signature = base64.b64encode(bytes(64)).decode()
    payload = base64.b64encode(b"payload").decode()
    signatures = [{"keyid": "", "sig": signature} for _ in range(count)]
    return {"payload": payload, "payloadType": PAYLOAD, "signatures": signatures}


def test_an_envelope_has_at_most_so_many_signatures() -> None:
    known = check_signature("It", envelope_of(MAX_SIGNATURES), b"payload", [])
    assert known.unchecked
    with pytest.raises(Unreadable, match="no DSSE envelope"):
        check_signature("It", envelope_of(MAX_SIGNATURES + 1), b"payload", [])


ENVELOPES: dict[str, dict[str, Any]] = {
    "another type": {"payloadType": "text/plain"},
    "no signatures": {"signatures": None},
    "signatures that are no objects": {"signatures": [1]},
    "signatures without a sig": {"signatures": [{}]},
    "a sig of null": {"signatures": [{"sig": None}]},
    "no base64": {"payload": "%"},
    "a payload of null": {"payload": None},
    "another payload": {"payload": ""},
}


@pytest.mark.parametrize("name", ENVELOPES)
def test_an_envelope_of_another_form_is_unreadable(name: str) -> None:
    with pytest.raises(Unreadable):
        check_signature("It", envelope_of(1) | ENVELOPES[name], b"payload", [])
