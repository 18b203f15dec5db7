"""Documents name files, classes and functions that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"]
SPAN = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"^[\w./-]*(?:\.(?:py|hpp|md|toml)|/)$")
LISTED = re.compile(r"^  ([\w/]+(?:\.py|/)) ", re.MULTILINE)
CLASS = re.compile(r"^(?:[A-Z][a-z0-9]+){2,}$")
WRITTEN_BY_USERS = {"schema.toml", "reproduction.md"}


def paths() -> set[str]:
    """Return the project's files and folders, with a slash after folders."""
    folders = ("src", "tests", "campaigns", "benchmarks", "scripts", "docs", "examples")
    names = {f"/{folder}/" for folder in folders}
    for folder in folders:
        for path in (ROOT / folder).rglob("*"):
            name = path.relative_to(ROOT).as_posix()
            names.add(f"/{name}/" if path.is_dir() else f"/{name}")
    return names | {f"/{path.name}" for path in ROOT.glob("*")}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_files_that_a_document_names_exist(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    names = [span for span in SPAN.findall(text) if FILE.match(span)] + LISTED.findall(text)
    existing = paths()
    missing = [
        name
        for name in names
        if name not in WRITTEN_BY_USERS and not any(path.endswith(f"/{name}") for path in existing)
    ]
    assert not missing


@pytest.mark.parametrize("document", DOCUMENTS)
def test_classes_that_a_document_names_exist(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    names = {span for span in SPAN.findall(text) if CLASS.match(span)}
    assert not {name for name in names if not re.search(rf"\bclass {name}\b", code)}


def test_listing_of_packages_is_complete() -> None:
    listed = set(LISTED.findall((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")))
    folders = {path.parent for path in (ROOT / "src" / "feta").glob("*/**/*.py")}
    packages = {f"{path.relative_to(ROOT / 'src' / 'feta').parts[0]}/" for path in folders}
    listed |= {f"{name.split('/')[0]}/" for name in listed if "/" in name}
    assert packages <= listed
