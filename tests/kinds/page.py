"""The page of the documentation that lists what happens to each kind of model."""

from collections import Counter
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "coverage.md"

HEAD = """# What happens to each kind of model

A test writes this page. It makes a small model of each kind, on a table with an integer, two
categories and a number with missing values; age and sex are sensitive. `feta.read_model` reads the
model. For several people, the model's own `predict` decides every counterpart. Verdicts, counts,
fair decisions and counterexamples must be the same.

- **proved**: FETA reads the model completely. The verdict holds for the exact function.
- **sampled**: a step of the preprocessing is unknown code, which FETA evaluates on samples.
- **counted**: the model's own function is evaluated on every counterpart, repeatedly.

{summary}

| family | kind | result | why not better |
|---|---|---|---|
"""


def render(rows: list[str]) -> str:
    """Return the page with these rows."""
    counts = Counter(provenance_of(row) for row in rows)
    parts = ", ".join(f"{counts[name]} {name}" for name in ("proved", "sampled", "counted"))
    summary = f"Of {len(rows)} kinds: {parts}."
    return HEAD.format(summary=summary) + "\n".join(rows) + "\n"


def committed_rows() -> list[str]:
    """Return the rows of the page as it is committed."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    return [line for line in lines[lines.index("|---|---|---|---|") + 1 :] if line]


def provenance_of(row: str) -> str:
    """Return what happens to the kind of a row."""
    return row.split(" | ")[2]
