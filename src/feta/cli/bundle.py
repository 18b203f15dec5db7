"""`feta bundle`: one archive with an audit, its evidence, and drafts for assessments."""

import hashlib
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from feta.cli.audit_files import FILES as AUDIT_FILES
from feta.cli.bundle_people import BundlePeople
from feta.cli.exit_code import ExitCode
from feta.cli.notices import notice
from feta.cli.output_path import check_file
from feta.cli.progress import show_progress
from feta.cli.sign import read_key
from feta.errors import SchemaError
from feta.io.bundle_file import SIGNED_MANIFEST, Content, checker_files, write_bundle
from feta.io.certificate_file import CERTIFICATE, MODEL, SCHEMA, SIGNATURE
from feta.io.certificate_reader import StoredCertificate, read_certificate
from feta.io.regular_file import atomic_write
from feta.io.sanitize import plain
from feta.report.annex_iv import annex_iv
from feta.report.audited import Audited, read_audit
from feta.report.bundle_guide import bundle_guide
from feta.report.evidence import Evidence
from feta.report.impact_ratios import write_impact_rows
from feta.report.model_card import model_card


@dataclass(frozen=True, slots=True)
class BundleOptions:
    """The options of `feta bundle`."""

    folder: Path
    out: Path
    sign: Path | None
    without_model: bool
    groups: Sequence[str]  # columns; by default the sensitive ones
    selected: str | None  # the decision that selects
    unknown: Sequence[str]  # categories that count as unknown
    data: Path | None  # the table, for columns that the schema lacks


def run_bundle(options: BundleOptions) -> ExitCode:
    """Write the archive."""
    check_file(options.out, [path for path in (options.data, options.sign) if path is not None])
    if options.out.resolve().parent == options.folder.resolve():
        raise SchemaError(f"{options.out}: --out is in the folder of the audit; name another place")
    key = None if options.sign is None else read_key(options.sign)
    audited, certificate = read_audit(options.folder), read_certificate(options.folder)
    _check_together(audited, certificate)
    with show_progress("reading the certificate", total=1.0) as advance:
        people = BundlePeople.read(certificate, audited, advance)
        impact = people.impact(options.groups, options.selected, options.unknown, options.data)
    if not impact:
        notice("no ll144.csv: several decisions are possible; name one with --selected")
    files = _stored_files(options, certificate)
    with_model = f"audit/{MODEL}" in files
    evidence = Evidence(
        audited.content, certificate.header, certificate.end, tuple(impact),
        key is not None, with_model,
    )  # fmt: skip
    files |= _documents(evidence, files)
    with (
        atomic_write(options.out) as part,
        show_progress(f"writing {plain(options.out.name)}", total=1.0) as advance,
    ):
        sign: Callable[[bytes], bytes] | None = None if key is None else key.signed
        write_bundle(part, files, seal=evidence.seal, sign=sign, advance=advance)
    _show(options, evidence)
    return ExitCode.DONE


def _check_together(audited: Audited, certificate: StoredCertificate) -> None:
    """Raise unless the report and the certificate are about the same audit."""
    counts = {name.replace(" ", "_"): n for name, n in certificate.end["counts"].items()}
    theirs = {name: audited.summary[name] for name in counts}
    digests = certificate.header["data_sha256"], audited.content["data_sha256"]
    if audited.doubt or counts != theirs or digests[0] != digests[1]:
        reason = audited.doubt or "another table, or other counts of verdicts"
        raise SchemaError(
            f"{audited.path.parent}: audit.json does not belong to the certificate: got {reason}; "
            "expected the files of one audit; audit again with --certify"
        )


def _stored_files(options: BundleOptions, certificate: StoredCertificate) -> dict[str, Content]:
    """Return the files of the audit and the checker, by their names in the archive."""
    folder = options.folder
    names = [*AUDIT_FILES, CERTIFICATE, SCHEMA]
    for name in names:
        if not (folder / name).is_file():
            raise SchemaError(
                f"{folder / name}: no such file; expected a folder of feta audit --certify"
            )
    names += [SIGNATURE] * (folder / SIGNATURE).exists()
    model = folder / MODEL
    if model.exists() and not options.without_model:
        if _digest(model) != certificate.header["model_sha256"]:
            raise SchemaError(f"{model}: the model does not belong to the certificate; audit again")
        names.append(MODEL)
    stored: dict[str, Content] = {f"audit/{name}": folder / name for name in names}
    return stored | checker_files()


def _documents(evidence: Evidence, files: dict[str, Content]) -> dict[str, Content]:
    documents = {"annex_iv.md": annex_iv(evidence), "model_card/README.md": model_card(evidence)}
    if evidence.impact:
        table = io.StringIO(newline="")
        write_impact_rows(evidence.impact, table)
        documents["ll144.csv"] = table.getvalue()
    signature = {SIGNED_MANIFEST} if evidence.signed else set[str]()
    names = frozenset({*files, *documents, "manifest.json", *signature})
    documents["README.md"] = bundle_guide(evidence, names)
    return {name: text.encode() for name, text in documents.items()}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _show(options: BundleOptions, evidence: Evidence) -> None:
    console = Console(soft_wrap=True)
    people: Any = evidence.summary["people"]
    out = plain(options.out)
    console.print(Text(f"Wrote {out}. It contains the data of {people:,} people."))
    signed = "Its manifest is signed." if evidence.signed else "It is not signed; see --sign."
    console.print(Text(f"{signed} Seal {evidence.seal}."))
    console.print(Text("Unpack it, and check it there with: python3 -m feta_check ."))
