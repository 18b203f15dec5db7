import ast
import io
import sys
import tokenize
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "src" / "feta_check"
# Everything else is the core.
SEPARATE = {"__main__.py", "command.py", "forest.py", "means.py", "receipts.py", "signatures.py"}
# The aim is a core of 500 lines; until it is reached, it must not grow.
MAX_CORE, MAX_SEPARATE = 733, 200


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


def test_the_core_is_small_enough_to_be_read() -> None:
    core = {p.name: code_lines(p) for p in FOLDER.glob("*.py") if p.name not in SEPARATE}
    assert sum(core.values()) <= MAX_CORE, core


@pytest.mark.parametrize("name", sorted(SEPARATE))
def test_each_separate_file_is_small(name: str) -> None:
    assert code_lines(FOLDER / name) <= MAX_SEPARATE


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
