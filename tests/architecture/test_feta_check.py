import ast
import io
import re
import sys
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "src" / "feta_check"
GUIDE = ROOT / "docs" / "how-to" / "certificates.md"

# What decides whether a claim about a network is true. `claims.py` imports the others.
CORE = {"claims.py", "model.py", "network.py", "people.py", "rules.py"}
MAX_CORE, MAX_OTHER = 500, 200
MAX_TOTAL = 1400  # a file for a new relation or kind of claim raises it


def code_lines(path: Path) -> int:
    """Count the lines with code: no blank lines, comments and docstrings."""
    text = path.read_text(encoding="utf-8")
    ignored = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in ignored | {tokenize.ENDMARKER}:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            assert node.end_lineno is not None
            lines -= set(range(node.lineno, node.end_lineno + 1))
    return len(lines)


LINES = {path.name: code_lines(path) for path in sorted(FOLDER.glob("*.py"))}


def test_the_proof_core_is_small_enough_to_be_read() -> None:
    assert LINES.keys() >= CORE
    assert sum(LINES[name] for name in CORE) <= MAX_CORE


@pytest.mark.parametrize("name", sorted(LINES.keys() - CORE))
def test_every_other_file_is_small(name: str) -> None:
    assert LINES[name] <= MAX_OTHER


def test_the_whole_program_is_small_enough_to_be_read() -> None:
    assert sum(LINES.values()) <= MAX_TOTAL


def test_the_guide_states_the_lines_of_every_file() -> None:
    stated = dict(re.findall(r"^\| `(\w+\.py)` \|.*\| (\d+) \|$", GUIDE.read_text("utf-8"), re.M))
    assert stated == {name: str(count) for name, count in LINES.items() if count}
    sums = re.search(r"proof core has (\d+) lines .* all files have ([\d,]+)", _guide_in_one_line())
    assert sums is not None
    core, total = (int(number.replace(",", "")) for number in sums.groups())
    assert (core, total) == (sum(LINES[name] for name in CORE), sum(LINES.values()))


def _guide_in_one_line() -> str:
    return " ".join(GUIDE.read_text("utf-8").split())


def test_only_the_standard_library_is_imported() -> None:
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0
                names = [node.module or ""]
            for name in names:
                package = name.split(".")[0]
                assert package == "feta_check" or package in sys.stdlib_module_names, name
