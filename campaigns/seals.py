"""Campaign of seals: no changed receipt, stale signature or changed bundle may be accepted.

    python -m campaigns.seals [--mutants 3000] [--cases 40] [--seed 0] [--node node]

Audits of random models are certified and signed. One receipt per person and one bundle per audit
must be accepted by `feta_check` with the signer's key. Then mutants: parts of other audits, claims
and headers that are sealed again, swapped leaves, changed files, and single bits. With Node, a
second checker, `campaigns/javascript/seals.mjs`, must accept and refuse the same files; it does not
read bundles.
"""

import argparse
import base64
import contextlib
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from campaigns.certificates import certify, draw_case
from campaigns.result import finish
from feta.io.bundle_file import checker_files, write_bundle
from feta.io.canonical_json import canonical
from feta.io.certificate_file import CERTIFICATE, MODEL, SCHEMA, SIGNATURE, CertificateWriter
from feta.io.certificate_reader import read_certificate
from feta.io.envelope import certificate_statement
from feta.io.receipt_file import receipt
from feta.io.signing_key import SigningKey
from feta_check import command

Generator = np.random.Generator
Json = dict[str, Any]
JAVASCRIPT = Path(__file__).parent / "javascript" / "seals.mjs"
BATCH = 200  # files that one process of Node checks
ACCEPTED = (command.PROVED, command.NOT_CHECKED)


@dataclass(frozen=True)
class Case:
    """A signed audit, its receipts, and its unpacked bundle."""

    folder: Path
    receipts: list[Json]
    bundle: Path
    seal: str

    @property
    def model(self) -> Path:
        """The model."""
        return self.folder / MODEL


@dataclass(frozen=True)
class Signer:
    """The keys of a campaign."""

    key: SigningKey
    public: Path
    other: SigningKey

    def sign(self, folder: Path, key: SigningKey | None = None) -> None:
        """Sign the certificate of a folder."""
        certificate = read_certificate(folder)
        payload = certificate_statement(certificate.header, certificate.end)
        (folder / SIGNATURE).write_bytes((key or self.key).signed(payload))


def make_case(rng: Generator, root: Path, signer: Signer) -> Case:
    """Certify and sign an audit of a random model; write its receipts and its bundle."""
    folder, bundle = root / "audit", root / "bundle"
    folder.mkdir(parents=True)
    case = draw_case(rng)
    certify(case, folder)
    signer.sign(folder)
    certificate = read_certificate(folder)
    rows = [claim["row"] for claim in certificate.claims()]
    receipts = [json.loads(receipt(folder, row=row)) for row in rows]
    seal = hashlib.sha256(canonical(certificate.end)).hexdigest()
    files = {f"audit/{name}": folder / name for name in (CERTIFICATE, SCHEMA, MODEL, SIGNATURE)}
    archive = root / "audit.zip"
    with archive.open("wb"):
        write_bundle(
            archive,
            {**files, **checker_files(), "annex_iv.md": b"draft"},
            seal=seal,
            sign=signer.key.signed,
            advance=lambda _: None,
        )
    with zipfile.ZipFile(archive) as content:
        content.extractall(bundle)
    return Case(folder, receipts, bundle, seal)


def check(path: Path, signer: Signer, *options: str) -> int:
    """Return the exit code of the checker."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return command.main([str(path), "--key", str(signer.public), *options])


# Mutants of receipts: each changes a receipt, and may take parts of another one.


def other_claim(rng: Generator, mine: Json, theirs: Json) -> None:
    """Take the claim of another person."""
    del rng
    mine["claim"] = theirs["claim"]


def other_leaf(rng: Generator, mine: Json, theirs: Json) -> None:
    """Take the claim and the place of another person."""
    del rng
    mine |= {name: theirs[name] for name in ("claim", "index", "path")}


def swapped_path(rng: Generator, mine: Json, theirs: Json) -> None:
    """Swap two hashes, take those of another person, or replace one."""
    path = mine["path"]
    kind = rng.integers(3)
    if kind == 0 and len(path) > 1:
        path[0], path[1] = path[1], path[0]
    elif kind == 1 or not path:
        mine["path"] = theirs["path"] if theirs["path"] != path else [*path, "00" * 32]
    else:
        path[rng.integers(len(path))] = rng.bytes(32).hex()


def moved_index(rng: Generator, mine: Json, theirs: Json) -> None:
    """State another place."""
    del theirs
    mine["index"] += int(rng.choice([-1, 1]))


def changed_claim(rng: Generator, mine: Json, theirs: Json) -> None:
    """Change the decision, the id or the row."""
    del theirs
    claim = mine["claim"]
    name = ("decision", "fair_decision", "id", "row", "salt")[rng.integers(5)]
    claim[name] = {"id": "p17", "row": claim["row"] + 1, "salt": "0" * 32}.get(name, 7)


def changed_header(rng: Generator, mine: Json, theirs: Json) -> None:
    """State another table or date, and seal it again."""
    del theirs
    name = ("data_sha256", "date", "votes_sha256")[rng.integers(3)]
    mine["header"][name] = "0" * 64
    mine["end"]["header_sha256"] = hashlib.sha256(canonical(mine["header"])).hexdigest()


def changed_end(rng: Generator, mine: Json, theirs: Json) -> None:
    """State another number of claims, or that all rows have one."""
    del theirs
    if rng.random() < 0.5:
        mine["end"]["complete"] = not mine["end"]["complete"]
    else:
        mine["end"]["claims"] += 1


def another_audit(rng: Generator, mine: Json, theirs: Json) -> None:
    """Take parts of another audit's receipt: the end line, the header, the signature."""
    parts = ("end", "header", "signature")
    chosen = [name for name in parts if rng.random() < 0.5] or ["end"]
    mine |= {name: theirs[name] for name in chosen}


RECEIPTS: dict[str, Callable[[Generator, Json, Json], None]] = {
    "another claim": other_claim,
    "path": swapped_path,
    "index": moved_index,
    "claim": changed_claim,
    "header": changed_header,
    "end": changed_end,
    "another audit": another_audit,
}


def seal_again(rng: Generator, folder: Path) -> None:
    """Change claims or the header after the signature, under a valid seal."""
    header, *claims, _ = (folder / CERTIFICATE).read_bytes().splitlines()
    fields = json.loads(header)
    changed = [json.loads(claim) for claim in claims]
    kind = rng.integers(3)
    if kind == 0:
        fields["data_sha256"] = "0" * 64
    elif kind == 1:
        changed = changed[1:]
    else:
        changed[rng.integers(len(changed))]["id"] = "another"
    writer = CertificateWriter(
        folder / CERTIFICATE, {k: v for k, v in fields.items() if k not in ("format", "version")}
    )
    for claim in changed:
        writer.add(claim)
    writer.finish(complete=True)


def change_file(rng: Generator, bundle: Path) -> None:
    """Change, remove, add or exchange a file, or change the manifest."""
    files = sorted(path for path in bundle.rglob("*") if path.is_file())
    path = files[rng.integers(len(files))]
    kind = rng.integers(4)
    if kind == 0:
        flip_bit(rng, path)
    elif kind == 1:
        path.unlink()
    elif kind == 2:
        path.with_name("added").write_bytes(b"added")
    else:
        manifest = json.loads((bundle / "manifest.json").read_bytes())
        entry = manifest["subject"][rng.integers(len(manifest["subject"]))]
        (bundle / entry["name"]).write_bytes(b"exchanged")
        entry["digest"]["sha256"] = hashlib.sha256(b"exchanged").hexdigest()
        (bundle / "manifest.json").write_bytes(canonical(manifest))


def flip_bit(rng: Generator, path: Path) -> None:
    """Flip one bit of a file."""
    content = bytearray(path.read_bytes())
    content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    path.write_bytes(content)


def decoded(content: Json) -> Json:
    """Return a receipt or an envelope without what is not signed: key ids, forms of base64."""
    envelope = content.get("signature", content)
    parts = [envelope["payload"], *(entry["sig"] for entry in envelope["signatures"])]
    return {**content, "signature": [base64.b64decode(part) for part in parts]}


class Campaign:
    """The mutants, and what the checker says about them."""

    def __init__(self, rng: Generator, root: Path, signer: Signer, cases: list[Case]) -> None:
        self.rng, self.root, self.signer, self.cases = rng, root, signer, cases
        self.counts = Counter[str]()
        self.kept: list[tuple[Path, bool]] = []  # for the second checker; whether it is accepted

    def valid(self) -> None:
        """Count the originals; each must be accepted."""
        for case in self.cases:
            codes = [check(case.folder, self.signer), check(case.bundle, self.signer)]
            self._keep(case.folder, codes[0])
            for content in case.receipts:
                codes += [self._check_receipt(content, case)]
                self._keep(self.root / "receipt.json", codes[-1])
            self.counts["originals"] += len(codes)
            refused = sum(code != command.PROVED for code in codes)
            if refused:
                self.counts["WRONG: an original was not accepted"] += refused

    def mutant(self) -> None:
        """Make one mutant and check it."""
        case, other = (self.cases[self.rng.integers(len(self.cases))] for _ in range(2))
        kinds = [*RECEIPTS, "replayed", "bit", "sealed again", "another signer", "bundle"]
        kind = kinds[self.rng.integers(len(kinds))]
        self.counts[f"mutants: {kind}"] += 1
        if kind in RECEIPTS or kind in ("replayed", "bit"):
            code = self._receipt(kind, case, other)
        else:
            code = self._folder(kind, case)
        if kind in RECEIPTS and code is not None:
            self._keep(self.root / "receipt.json", code)
        elif kind in ("sealed again", "another signer") and code is not None:
            self._keep(self.root / "mutant", code)
        if code is None:
            self.counts["equal to the original"] += 1
        elif code in ACCEPTED:
            self.counts[f"WRONG: accepted: {kind}"] += 1
        else:
            self.counts["refused"] += 1

    def _keep(self, path: Path, code: int) -> None:
        """Copy a receipt or a folder for the second checker."""
        target = self.root / "kept" / str(len(self.kept))
        target.parent.mkdir(exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, target)
        else:
            shutil.copyfile(path, target)
        self.kept.append((target, code in ACCEPTED))

    def compare(self, node: str) -> None:
        """Check the same files with the program in JavaScript."""
        for start in range(0, len(self.kept), BATCH):
            part = self.kept[start : start + BATCH]
            files = [str(path) for path, _ in part]
            arguments = [node, str(JAVASCRIPT), str(self.signer.public), *files]
            done = subprocess.run(arguments, capture_output=True, text=True, check=True)
            for line, (_, accepted) in zip(done.stdout.splitlines(), part, strict=True):
                same = (line == "accepted") == accepted
                self.counts[
                    f"JavaScript: {line}" if same else "WRONG: the checkers contradict each other"
                ] += 1

    def _receipt(self, kind: str, case: Case, other: Case) -> int | None:
        rng = self.rng
        mine = case.receipts[rng.integers(len(case.receipts))]
        source = case if kind in ("another claim", "path") else other
        theirs = source.receipts[rng.integers(len(source.receipts))]
        if kind == "replayed":  # a true receipt of another audit
            same = case.seal == other.seal
            return None if same else self._check_receipt(theirs, other, "--seal", case.seal)
        changed = json.loads(canonical(mine))
        if kind == "bit":
            return self._flipped(mine, case)
        RECEIPTS[kind](rng, changed, json.loads(canonical(theirs)))
        if changed == mine:
            return None
        return self._check_receipt(changed, case)

    def _flipped(self, original: Json, case: Case) -> int | None:
        path = self.root / "receipt.json"
        path.write_bytes(canonical(original) + b"\n")
        flip_bit(self.rng, path)
        code = check(path, self.signer, "--model", str(case.model))
        with contextlib.suppress(ValueError, LookupError, TypeError):
            if decoded(json.loads(path.read_bytes())) == decoded(original):
                return None
        return code

    def _check_receipt(self, content: Json, case: Case, *options: str) -> int:
        path = self.root / "receipt.json"
        path.write_bytes(canonical(content) + b"\n")
        return check(path, self.signer, "--model", str(case.model), *options)

    def _folder(self, kind: str, case: Case) -> int | None:
        target = self.root / "mutant"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(case.bundle if kind == "bundle" else case.folder, target)
        if kind == "bundle":
            envelope = target / "manifest.dsse.json"
            before = decoded(json.loads(envelope.read_bytes())), envelope.read_bytes()
            change_file(self.rng, target)
            if envelope.exists() and envelope.read_bytes() != before[1]:
                with contextlib.suppress(ValueError, LookupError, TypeError):
                    after = decoded(json.loads(envelope.read_bytes()))
                    if after["signature"] == before[0]["signature"]:
                        return None
        elif kind == "sealed again":
            seal_again(self.rng, target)
        else:
            self.signer.sign(target, self.signer.other)
        return check(target, self.signer)


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--mutants", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--node", default=shutil.which("node") or "")
    options = parser.parse_args()
    rng, started = np.random.default_rng(options.seed), time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        signer = Signer(SigningKey.new(), root / "key.pub", SigningKey.new())
        signer.public.write_text(signer.key.public_pem)
        cases = [make_case(rng, root / f"case{n}", signer) for n in range(options.cases)]
        campaign = Campaign(rng, root, signer, cases)
        campaign.valid()
        for _ in range(options.mutants):
            campaign.mutant()
        if options.node:
            campaign.compare(options.node)
        else:
            print("Node is not installed: the second checker is not compared", file=sys.stderr)
    return finish(campaign.counts, started)


if __name__ == "__main__":
    sys.exit(main())
