"""Figures about the code: lengths, long files and lines, repeated class names, imports.

    python scripts/code_figures.py [TREE]

TREE is another checkout of this project, by default this one.
"""

import ast
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

LONG_FILE = 400
LONG_LINE = 100
N_MOST_IMPORTED = 5
FOLDERS = ("src", "tests", "campaigns", "benchmarks", "examples", "scripts", "docs")


def main() -> None:
    """Print the figures of one tree."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]
    modules = sorted((root / "src").rglob("*.py"))
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in modules}
    lengths = sorted(length for tree in trees.values() for length in function_lengths(tree))
    tenth = lengths[round(0.9 * (len(lengths) - 1))]
    print(f"modules in src: {len(modules)}")
    print(
        f"functions: {len(lengths)}; lines: median {statistics.median(lengths):g}, "
        f"p90 {tenth}, max {lengths[-1]}"
    )
    files = [path for path in sources(root) if n_lines(path) > LONG_FILE]
    files_in_src = [path for path in files if path.is_relative_to(root / "src")]
    print(f"files over {LONG_FILE} lines: {len(files)}, in src {len(files_in_src)}")
    long_lines = [path for path in sources(root) for _ in range(n_long_lines(path))]
    lines_in_src = [path for path in long_lines if path.is_relative_to(root / "src")]
    print(f"lines over {LONG_LINE} characters: {len(long_lines)}, in src {len(lines_in_src)}")
    repeated = repeated_classes(trees)
    print(f"class names used twice in src: {len(repeated)}: {', '.join(repeated) or '-'}")
    fan_in = importers(trees, root / "src")
    print(f"modules that most others import: {fan_in.most_common(N_MOST_IMPORTED)}")


def sources(root: Path) -> Iterator[Path]:
    """Yield the Python and C++ files."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".py", ".hpp", ".cpp", ".inc"):
                yield path


def n_lines(path: Path) -> int:
    """Count the lines of a file."""
    return len(path.read_text(encoding="utf-8").splitlines())


def n_long_lines(path: Path) -> int:
    """Count the lines of a file that are too long."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return sum(len(line) > LONG_LINE for line in lines)


def function_lengths(tree: ast.Module) -> Iterator[int]:
    """Yield the number of lines of each function, docstring included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.end_lineno is not None:
            yield node.end_lineno - node.lineno + 1


def repeated_classes(trees: dict[Path, ast.Module]) -> list[str]:
    """Return the names of classes that are defined in several modules."""
    modules = defaultdict(set)
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                modules[node.name].add(path)
    return sorted(name for name, paths in modules.items() if len(paths) > 1)


def importers(trees: dict[Path, ast.Module], source: Path) -> Counter[str]:
    """Count for each module how many others import it."""
    names = {
        ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        for path in trees
    }
    counts: Counter[str] = Counter()
    for tree in trees.values():
        imported = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                submodules = {f"{node.module}.{alias.name}" for alias in node.names} & names
                imported |= submodules or {node.module} & names
        counts.update(imported)
    return counts


if __name__ == "__main__":
    main()
