"""A model card for the Hugging Face Hub: README.md with metadata in YAML, from one audit."""

import json
from collections.abc import Iterator

from feta.io.sanitize import plain
from feta.report.evidence import GAP, Evidence, bullets
from feta.report.markdown import md

# Metrics of audit.json, and their names in the card.
METRICS = {
    "ce_rate": "Share of people with a counterexample (CE rate)",
    "flip_rate": "Share of decisions that differ from the fair ones",
    "accuracy": "Accuracy",
    "fair_accuracy": "Accuracy of the fair decisions",
    "mean_absolute_error": "Mean absolute error",
    "fair_mean_absolute_error": "Mean absolute error of the fair scores",
}


def model_card(evidence: Evidence) -> str:
    """Return the model card."""
    return "\n".join([*_metadata(evidence), *_text(evidence)]) + "\n"


def _yaml(value: object) -> str:
    """Return a text as a quoted YAML scalar."""
    return json.dumps(plain(value), ensure_ascii=False)


def _metadata(evidence: Evidence) -> Iterator[str]:
    regression = evidence.model["tolerance"] is not None
    task = "tabular-regression" if regression else "tabular-classification"
    yield from ("---", "library_name: feta-fair", f"pipeline_tag: {task}")
    yield from ("tags:", f"- {task}", "- individual-fairness")
    yield from ("model-index:", f"- name: {_yaml(evidence.name)}", "  results:")
    yield from ("  - task:", f"      type: {task}")
    yield from ("    dataset:", f"      name: {_yaml(evidence.audit['data'])}")
    yield from (f"      type: {_yaml(evidence.audit['data'])}", "    metrics:")
    for name, words in METRICS.items():
        value = evidence.summary.get(name)
        if value is not None:
            yield from (f"    - type: {name}", f"      name: {_yaml(words)}")
            yield f"      value: {value!r}"
    lowest = evidence.lowest_ratio
    if lowest is not None and lowest.ratio_from_2_percent is not None:
        words = f"Lowest impact ratio ({lowest.columns[0]}: {lowest.category})"
        yield from ("    - type: impact_ratio", f"      name: {_yaml(words)}")
        yield f"      value: {float(lowest.ratio_from_2_percent)!r}"
    yield "---"


def _text(evidence: Evidence) -> Iterator[str]:
    model = evidence.model
    yield from ("", f"# Model card of {md(evidence.name)}", "")
    yield "The figures come from one audit. They are evidence for an assessment, no assessment."
    yield from ("", "## Model", "", *bullets(evidence.identity()))
    yield f"- Decisions: {md(', '.join(model['outcomes']) or 'a score')}, rule {md(model['rule'])}"
    yield f"- {GAP} developers, architecture, license, contact."
    yield from ("", "## Intended use", "", f"{GAP} intended uses, users, and uses out of scope.")
    yield from ("", "## Training data", "", f"{GAP} origin, period, preprocessing.")
    yield from ("", "## Evaluation data", "")
    yield f"The audited table has the SHA-256 `{md(evidence.header['data_sha256'])}`."
    yield from ("", f"{GAP} origin, period, and how the people were selected.")
    yield from ("", "## Results", "", *bullets(evidence.results()))
    yield from (*bullets(evidence.accuracies()), "")
    if evidence.impact:
        yield from ("### Selection rates by group", "", *evidence.impact_table(), "")
        yield "`ll144.csv` has intersections, unknown categories, and people without a decision."
    yield from ("", "## Bias, risks, and limitations", "")
    yield "- Other columns may reveal the sensitive ones. A proof of fairness excludes no proxies."
    yield "- The audit proves nothing about people outside the table."
    yield "- That the rows are real, and that production runs this model, was not checked."
    yield f"- {GAP} known risks, and what was done about them."
