"""The command: a verdict per claim, a summary, and an exit code."""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from feta_check.certificate import Certificate
from feta_check.claims import check_claim
from feta_check.model import Model, check_header
from feta_check.model_file import ModelFile
from feta_check.reading import Refuted, Unchecked, Unreadable, canonical, digest
from feta_check.receipts import Receipt
from feta_check.signatures import (
    ENVELOPE,
    MANIFEST,
    Signature,
    check_manifest,
    check_signature,
    public_key,
    read_envelope,
    statement,
)

PROVED, FALSE, BAD_INPUT, NOT_CHECKED = 0, 1, 2, 3
MAX_SCHEMA = 2**23
RECORDED = "recorded answers of a {} model: they cannot be re-proved without the model"
Check = Callable[[dict[str, Any]], str]


def main(arguments: Sequence[str]) -> int:
    """Check a folder or a receipt; return the exit code."""
    options = _options(arguments)
    try:
        return _check_receipt(options) if options.folder.is_file() else _check_folder(options)
    except (Unreadable, OSError, MemoryError, RecursionError) as error:
        print(f"feta_check: {_shown(error)}", file=sys.stderr)
        return BAD_INPUT


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="feta_check",
        description="Re-prove the claims of a certificate of FETA, without FETA.",
        epilog="Exit codes: 0 every claim was re-proved; 1 a claim is false; 2 unreadable; "
        "3 some claims were not checked.",
    )
    parser.add_argument("folder", type=Path, help="of an audit, of a bundle; or a receipt")
    parser.add_argument("--model", type=Path, help="the model, if the folder does not have it")
    parser.add_argument(
        "--key", type=Path, action="append", default=[], help="a signer's public key, a PEM file"
    )
    parser.add_argument("--seal", help="the seal that the auditor published")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="processor time per claim"
    )
    parser.add_argument("--sample", type=int, help="check only so many claims, evenly spaced")
    parser.add_argument("--json", action="store_true", help="print the summary only, as JSON")
    parser.add_argument("--quiet", action="store_true", help="list only what was not re-proved")
    return parser.parse_args(arguments)


def _check_receipt(options: argparse.Namespace) -> int:
    receipt = Receipt(options.folder)
    _check_seal(options, receipt.seal)
    signature = receipt.check_signature([public_key(path) for path in options.key])
    result, words = _result(_checker(options, receipt.header, receipt.schema), receipt.claim)
    if options.json:
        print(json.dumps({"results": {result: 1}, "seal": receipt.seal}))
    else:
        for line in () if options.quiet else receipt.described():
            print(f"  {_shown(line)}")
        print(f"{_name(receipt.claim)}: {result}: {words}")
        print(f"The claim is one of {receipt.end['claims']} under the seal {receipt.seal}.")
        if not options.key and options.seal is None:
            print("Compare this seal with the one that the auditor published.")
        print(signature.words)
        if result == "not checked":
            print("The claim itself was not proved: only its membership was checked.")
    return _code(result == "FALSE", result == "not checked", [signature])


def _check_seal(options: argparse.Namespace, seal: str) -> None:
    if options.seal not in (None, seal):
        raise Unreadable(f"it belongs to another audit: got the seal {seal}")


def _check_folder(options: argparse.Namespace) -> int:
    keys = [public_key(path) for path in options.key]
    signatures = []
    if (options.folder / MANIFEST).exists():
        signatures = [check_manifest(options.folder, keys)]
        options.folder /= "audit"
    certificate = Certificate(options.folder / "certificate.jsonl")
    _check_seal(options, digest(canonical(certificate.end)))
    envelope = read_envelope(options.folder / ENVELOPE)
    if envelope is not None or not signatures:  # a manifest covers the certificate, too
        payload = statement(certificate.header, certificate.end)
        signatures.append(check_signature("Certificate", envelope, payload, keys))
    schema = _read(options.folder / "schema.json")
    if digest(schema) != certificate.header["schema_sha256"]:
        raise Unreadable("schema.json is not the one of the certificate")
    check = _checker(options, certificate.header, schema)
    total, counts, verdicts = certificate.end["claims"], Counter[str](), Counter[str]()
    every = 1 if not options.sample else max(1, -(-total // options.sample))
    started = shown = time.monotonic()
    for index, claim in enumerate(certificate.claims()):
        verdicts[claim["verdict"]] += 1
        result, words = _result(check, claim) if index % every == 0 else ("not checked", "sample")
        counts[result] += 1
        known = words == "sample" or result == "re-proved"
        if not options.json and not (options.quiet and known):
            print(f"{_name(claim)}: {result}: {words}")
        if time.monotonic() > shown + 2 and not options.json:
            shown = time.monotonic()
            print(f"{index + 1} of {total} claims", file=sys.stderr)
    if options.json:
        print(json.dumps({"results": counts, "verdicts": verdicts, "root": certificate.root}))
    else:
        print(*[signature.words for signature in signatures], sep="\n")
        _summarize(certificate, counts, verdicts, time.monotonic() - started)
    return _code(counts["FALSE"], counts["not checked"], signatures)


def _code(false: int, unchecked: int, signatures: list[Signature]) -> int:
    if false:
        return FALSE
    unchecked += sum(signature.unchecked for signature in signatures)
    return NOT_CHECKED if unchecked else PROVED


def _checker(options: argparse.Namespace, header: dict[str, Any], schema: bytes) -> Check:
    """Return the function that checks a claim."""
    if header["provenance"] != "proved":
        return _refuse(RECORDED.format(header["provenance"]))
    path = options.model or options.folder / "model.feta"
    if not path.exists() and options.model is None:
        return _refuse("no model: name it with --model FILE")
    file = ModelFile(path)
    try:
        check_header(header, schema, file)
        model = Model(file)
    except Unchecked as error:
        return _refuse(str(error))
    if digest(model.votes.json) != header["votes_sha256"]:
        raise Unreadable("the votes are not those of the certificate")
    return partial(check_claim, model, seconds=options.seconds)


def _refuse(reason: str) -> Check:
    def check(claim: dict[str, Any]) -> str:
        if claim["verdict"] == "not audited":
            return "no claim"
        raise Unchecked(reason)

    return check


def _result(check: Check, claim: dict[str, Any]) -> tuple[str, str]:
    try:
        return "re-proved", check(claim)
    except Refuted as error:
        return "FALSE", f"{claim['verdict']}: {_shown(error)}"
    except Unchecked as error:
        return "not checked", f"{claim['verdict']}: {_shown(error)}"


def _summarize(
    certificate: Certificate, counts: Counter[str], verdicts: Counter[str], seconds: float
) -> None:
    end, header = certificate.end, certificate.header
    stated = ", ".join(f"{verdicts[name]} {name}" for name in sorted(end["counts"]))
    print(f"The certificate states: {stated}." + ("" if end["complete"] else " It is partial."))
    print(
        f"Re-proved: {counts['re-proved']}. False: {counts['FALSE']}. "
        f"Not checked: {counts['not checked']}. {seconds:.1f} s."
    )
    print(f"Model {header['model_sha256']}, table {header['data_sha256']}, root {end['root']}.")
    print(f"Seal {digest(canonical(end))}.")
    if not counts["FALSE"] and not counts["not checked"]:
        print("Every claim was re-proved.")


def _read(path: Path) -> bytes:
    with path.open("rb") as stream:
        content = stream.read(MAX_SCHEMA + 1)
    if len(content) > MAX_SCHEMA:
        raise Unreadable(f"{path}: the file is too large; expected at most {MAX_SCHEMA} bytes")
    return content


def _name(claim: dict[str, Any]) -> str:
    return f"row {claim['row']}" + (f" ({_shown(claim.get('id'))})" if claim.get("id") else "")


def _shown(value: object) -> str:
    """Return a text in which no character can control a terminal."""
    return "".join(c if c.isprintable() else "?" for c in str(value))[:400]
