"""The page at the start of a bundle: its files, and how to check them without FETA."""

from collections.abc import Iterator

from feta.report.evidence import GAP, Evidence, bullets
from feta.report.markdown import md

FILES = {
    "manifest.json": "the SHA-256 of each file, as an in-toto statement",
    "manifest.dsse.json": "the signature of the manifest",
    "audit/certificate.jsonl": "one claim per person, with its evidence",
    "audit/certificate.dsse.json": "the signature of the certificate",
    "audit/schema.json": "what was asked: columns, domains, the rule",
    "audit/model.feta": "the model that the claims are about",
    "audit/report.html": "the report for readers",
    "audit/audit.json": "the report for programs",
    "audit/verdicts.csv": "the verdict of each row",
    "audit/pairs.csv": "the worst counterexample of each unfair person",
    "feta_check/": "the independent checker; it needs Python 3.11 and nothing else",
    "model_card/README.md": "a model card for the Hugging Face Hub",
    "annex_iv.md": "a draft of sections 2(g) and 3 of Annex IV of the EU AI Act",
    "ll144.csv": "selection rates and impact ratios, for a bias audit in New York City",
}


def bundle_guide(evidence: Evidence, names: frozenset[str]) -> str:
    """Return the page; `names` are the files of the bundle."""
    return "\n".join(_lines(evidence, names)) + "\n"


def _lines(evidence: Evidence, names: frozenset[str]) -> Iterator[str]:
    yield from (f"# Evidence from an audit of {md(evidence.name)}", "")
    yield from (*bullets(evidence.identity()), "", *bullets(evidence.results()), "")
    yield from ("## Check it", "", "In this folder, with Python 3.11 or later:", "")
    key = " --key PUBLIC_KEY" if evidence.signed else ""
    model = "" if evidence.with_model else " --model MODEL"
    yield from ("```text", f"python3 -m feta_check .{model}{key}", "```", "")
    yield "Whoever changes this archive can change the checker in it, too. Take the folder"
    yield "`feta_check` from a source that you trust, or read it. Get the signer's public key and"
    yield "the seal above from the auditor, not from this archive."
    yield from ("", "## Files", "", "| file | content |", "|---|---|")
    for name, content in FILES.items():
        if name in names or any(known.startswith(name) for known in names):
            yield f"| `{name}` | {content} |"
    yield from ("", "## Gaps", "")
    yield "The archive is evidence for assessments. It does not assess anything."
    yield f"- {GAP} all passages of `annex_iv.md` and `model_card/README.md` with these words."
    yield f"- {GAP} for Local Law 144: the source of the data, the date of distribution, and why"
    yield "  categories below 2 % were excluded, if they were."
    yield from ("", "## Personal data", "")
    yield f"The folder `audit` contains data of {evidence.summary['people']:,} people. Give it"
    yield "only to those who may have them."
