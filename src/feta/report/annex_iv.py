"""A draft of the sections of Annex IV of the EU AI Act that an audit supports: 2(g) and 3.

Regulation (EU) 2024/1689. The draft summarizes what the sections ask for and does not quote them.
"""

from collections.abc import Iterator

from feta.report.evidence import GAP, Evidence, bullets
from feta.report.markdown import md, sentence


def annex_iv(evidence: Evidence) -> str:
    """Return the draft."""
    return "\n".join([*_head(evidence), *_section_2g(evidence), *_section_3(evidence)]) + "\n"


def _head(evidence: Evidence) -> Iterator[str]:
    yield from (f"# Annex IV, sections 2(g) and 3: draft for {md(evidence.name)}", "")
    yield "Draft for the technical documentation under Regulation (EU) 2024/1689, Article 11."
    yield "It contains evidence from one audit. It states nothing about legal requirements."
    yield from ("", *bullets(evidence.identity()), "")


def _section_2g(evidence: Evidence) -> Iterator[str]:
    yield from ("## 2(g) Validation and testing", "", "### Procedure", "")
    counterparts = evidence.model.get("counterparts")
    size = "" if counterparts is None else f" Each person has {counterparts:,} counterparts."
    yield "For each person, all counterparts were considered: the same record with any other"
    yield f"values of the sensitive columns.{size}"
    for name, domain in evidence.model["sensitive"].items():
        yield f"- {md(name)}: {sentence(str(domain))}"
    yield from ("", "### Testing data and their main characteristics", "")
    yield f"{evidence.summary['people']:,} people, in the table {md(evidence.audit['data'])}."
    yield from ("", f"{GAP} origin, period, representativeness, and how people were selected.")
    yield from ("", "### Metrics of accuracy", "", *bullets(evidence.accuracies()))
    yield from ("", f"{GAP} metrics of robustness and cybersecurity.")
    yield from ("", "### Potentially discriminatory impacts", "", *bullets(evidence.results()), "")
    if evidence.impact:
        yield from evidence.impact_table()
    else:
        yield f"{GAP} selection rates; name the decision that selects (`--selected`)."
    yield from ("", "### Test logs and reports", "")
    yield "`audit/certificate.jsonl` contains one claim with evidence per person,"
    yield "`audit/report.html` the report."
    if evidence.signed:
        yield "The digests of all files are signed (`manifest.dsse.json`)."
    else:
        yield f"{GAP} a signature; the files are not signed (`--sign`)."
    yield f"{GAP} names of the responsible persons; tests of pre-determined changes."
    yield ""


def _section_3(evidence: Evidence) -> Iterator[str]:
    yield from ("## 3 Monitoring, functioning and control", "")
    yield from ("### Capabilities and limitations in performance", "")
    summary = evidence.summary
    yield f"- {summary['undecided']:,} of {summary['people']:,} people remain undecided."
    yield "- Accuracy by group is in `audit/report.html` if the audit had labels."
    yield f"- {GAP} the expected level of accuracy for the intended purpose."
    yield from ("", "### Sources of risks of discrimination", "")
    alone = summary["one_attribute_is_enough"]
    yield f"- {summary['unfair']:,} people have a counterexample."
    for name, count in alone.items():
        yield f"- {md(name)}: for {count:,} of them, a change of this column alone is enough."
    never = evidence.model.get("sensitive_never_read") or ()
    for name in never:
        yield f"- {md(name)}: the model does not use this column."
    yield "- Proxies: other columns may reveal the sensitive ones; see `audit/report.html`."
    yield f"- {GAP} risks to health, safety and other fundamental rights."
    yield from ("", "### Human oversight and technical measures", "")
    yield "- Fair decisions (`feta predict`) never read the sensitive columns; the table above"
    yield "  compares them with those of the model."
    yield f"- {GAP} whether they are used, and the measures of human oversight."
    yield from ("", "### Input data", "")
    yield "- `audit/schema.json` specifies all columns and their domains."
