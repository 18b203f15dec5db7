"""Comments, docstrings, messages and documents use the field's own terms, in US spelling."""

import io
import re
import sys
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# What to write instead; identifiers are not searched.
PHRASES = {
    r"an? \w+ an? (?!few|little|lot)\w+": "one X per Y",
    r"(?:one|two|once|twice|\d+) (?:(?!if\b)\w+ )?an? "
    r"(?:person|row|column|value|neuron|fold)": "per",
    r"hang(?:s|ing)? on": "depends on",
    r"t(?:ell|ells|old|elling) (?:\w+ )?apart": "distinguish; deduplicate",
    r"told": "given; stated; reported",
    r"g(?:o|oes|oing) on": "resume; continue",
    r"went on": "resumed; continued",
    r"dear(?:er|est)?": "expensive; costly",
    r"puts? to": "evaluate on",
    r"st(?:ands?|ood|anding) in": "is stored in",
    r"as it stands": "as it is; now",
    r"(?:decided|treated|decide|treat|decides|treats) (?:\w+ )?apart": "get different decisions",
    r"(?:decided|treated|decide|treat|decides|treats) (?:\w+ )?alike": "get the same decision",
    r"settle(?:s|d)?": "decide; prove; resolve",
    r"settling": "deciding; proving",
    r"(?:stay|stays|stayed|left|leave|leaves|still) open": "remains undecided",
    r"whole numbers?": "integer",
    r"com(?:es?|ing) to (?!the\b|an end)": "summarizes; amounts to",
    r"strangers?": "untrusted input",
    r"clothing|clothes|dress(?:es)?": "interface",
    r"front door": "public API",
    r"beside": "next to; compared with",
    r"again and again": "recursively; repeatedly",
    r"for sure|on the safe side": "provably; conservative",
    r"tr(?:y|ies|ied|ying) out": "sampled, not proved",
    r"at hand": "available",
    r"that cannot be[.;]": "invalid",
    r"people's own units": "in raw units",
    r"ask(?:s|ed|ing)? (?:\w+ )?again": "retry",
    r"hear(?:s|d|ing)?": "handle (a signal)",
    r"(?:solver|engine|runtime)'s word|word (?:is|was|for it)": "claim",
    r"nobody reads": "stdout was closed",
    r"(?:his|her|whoever) \w+ed": "name who does it",
    r"of old": "earlier",
    r"goes? without saying": "omit it",
    r"needs? not even": "need not",
    r"never mind": "ignore",
    r"all the same": "anyway; still",
    r"look(?:s|ed|ing)? on": "watch",
    # US spelling
    r"\w*(?:behaviour|colour|favour|neighbour|honour)\w*": "-or",
    r"(?:licence|centre|grey|catalogue|analyse[ds]?)": "US spelling",
    r"(?:labelled|modelled|cancelling|travelled|labelling|modelling)": "one l",
    r"(?:normal|penal|maxim|minim|optim|summar|recogn|initial|organ|standard|general)"
    r"is(?:e|es|ed|ing)": "-ize",
}
SEARCH = [
    (re.compile(rf"(?<![\w-])(?:{old})(?![\w-])", re.IGNORECASE), new)
    for old, new in PHRASES.items()
]

# A docstring starts with what a function returns or does.
FIRST_WORDS = re.compile(r"^(?:Give|Gives|Tell|Tells|Say|Says)\b")

# Texts that must keep their words: names in files of earlier versions, quotations, data.
KEPT = {
    # Values and names that files and callers of earlier versions use.
    "src/feta/report/audit_json.py": {"whole number"},
    "src/feta/report/gate.py": {"settled"},
    "src/feta/verdict/spread.py": {"settled"},
    "src/feta/verdict/tally.py": {"settled"},
}

CODE_BLOCK = re.compile(r"```.*?```|`[^`\n]*`|<!--.*?-->|\]\([^)]*\)", re.DOTALL)
FILES = sorted(
    path
    for pattern in (
        "src/**/*.py",
        "src/**/*.?pp",
        "src/**/*.inc",
        "src/**/*.j2",
        "src/**/*.html",
        "docs/**/*.md",
        "docs/**/*.py",
        "examples/*.py",
        "*.md",
    )
    for path in ROOT.glob(pattern)
    if "_build" not in path.parts
)


def texts(path: Path) -> list[tuple[int, str]]:
    """Return comments and strings of code, or the prose of a document, with their line numbers."""
    content = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        tokens = tokenize.generate_tokens(io.StringIO(content).readline)
        found = [
            (one.start[0], one.string)
            for one in tokens
            if one.type in (tokenize.COMMENT, tokenize.STRING)
            or tokenize.tok_name[one.type] == "FSTRING_MIDDLE"
        ]
        return [(line, CODE_BLOCK.sub("`code`", text)) for line, text in found]
    if path.suffix in (".hpp", ".cpp", ".inc"):
        return [
            (number, line[line.index("//") :])
            for number, line in enumerate(content.split("\n"), start=1)
            if "//" in line
        ]
    if path.suffix == ".md":
        content = CODE_BLOCK.sub(lambda one: "\n" * one[0].count("\n") + "`code`", content)
        parts, line = [], 1
        for part in re.split(r"(\n\s*\n)", content):
            parts.append((line, part))
            line += part.count("\n")
        return parts
    return [(number, line) for number, line in enumerate(content.split("\n"), start=1)]


def dialect(path: Path) -> list[str]:
    """Return each phrase that a file should not use, with its line and what to write instead."""
    name = path.relative_to(ROOT).as_posix()
    found = []
    for line, text in texts(path):
        words = re.sub(r"\s+", " ", text)
        for pattern, instead in SEARCH:
            found += [
                f"{name}:{line}: {match[0]!r} -> {instead}"
                for match in pattern.finditer(words)
                if match[0].lower() not in KEPT.get(name, set())
            ]
        docstring = re.match(r'^[rf]*"""\s*(\S+)', text)
        if docstring and FIRST_WORDS.match(docstring[1]):
            found.append(f"{name}:{line}: starts with {docstring[1]!r} -> Return; Compute")
    return found


def test_the_files_are_found() -> None:
    suffixes = {path.suffix for path in FILES}
    assert {".py", ".hpp", ".md"} <= suffixes


def test_a_phrase_is_found_in_a_comment_and_not_in_an_identifier(tmp_path: Path) -> None:
    content = 'told = 1  # a row a person\n"""Give what hangs on it."""\n'
    (tmp_path / "x.py").write_text(content)
    text = " ".join(one for _, one in texts(tmp_path / "x.py"))
    assert [pattern.pattern for pattern, _ in SEARCH if pattern.search(text)]
    assert "told" not in text


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_texts_use_plain_words(path: Path) -> None:
    assert not dialect(path)


if __name__ == "__main__":
    chosen = tuple(sys.argv[1:]) or ("",)
    for file in FILES:
        if file.relative_to(ROOT).as_posix().startswith(chosen):
            sys.stdout.writelines(f"{line}\n" for line in dialect(file))
