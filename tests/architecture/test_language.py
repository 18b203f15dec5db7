"""README and documentation are written in short sentences."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
MAX_WORDS = 40

FENCE = re.compile(r"^( *)(`{3,}|:{3,}).*?^\1\2", re.DOTALL | re.MULTILINE)
INLINE_CODE = re.compile(r"`[^`]+`")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
TABLE_ROW = re.compile(r"^ *\|.*$", re.MULTILINE)
HEADING = re.compile(r"^(#+ .*)$", re.MULTILINE)
ITEM = re.compile(r"^ *(?:[-*+]|\d+\.) ", re.MULTILINE)
SENTENCE_END = re.compile(r"[.!?][\"”)*_]*\s+(?=[^a-z])")
WORD = re.compile(r"\S*\w\S*")


def sentences(markdown: str) -> Iterator[str]:
    """Yield the sentences of a page without code blocks and tables; inline code is one word."""
    prose = LINK.sub(r"\1", INLINE_CODE.sub("Code", FENCE.sub("", markdown)))
    prose = ITEM.sub("\n\n", HEADING.sub(r"\n\1\n", TABLE_ROW.sub("\n", prose)))
    for block in prose.split("\n\n"):
        yield from SENTENCE_END.split(block)


def test_words_per_sentence_are_counted() -> None:
    page = """# A title without a period

One two three. Four `five six`, [seven](eight.md "nine")! Is 2.5 a word?

| a table. | is not prose |
|---|---|
- An item
  of two lines
- Another **item.** And its second sentence.

```text
Code. Is left out.
```
"""
    counts = [len(WORD.findall(sentence)) for sentence in sentences(page)]
    assert [count for count in counts if count] == [5, 3, 3, 4, 5, 2, 4]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_sentence_is_longer_than_40_words(page: Path) -> None:
    long = [
        f"{count} words: {' '.join(sentence.split())}"
        for sentence in sentences(page.read_text(encoding="utf-8"))
        if (count := len(WORD.findall(sentence))) > MAX_WORDS
    ]
    assert not long, "\n".join(long)
