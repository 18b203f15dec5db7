"""The documentation builds without warnings into a site that is complete and self-contained."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import typer.main

import feta
from feta.cli.app import app
from tests.extras import needs

pytestmark = needs("sphinx", "myst_parser", "numpydoc", "pydata_sphinx_theme")

ROOT = Path(__file__).parents[2]

# Elements whose attribute a browser loads by itself; a link (a) is only followed.
LOADED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}


@dataclass
class Page(HTMLParser):
    """The names, links and loaded addresses of one page."""

    text: str
    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if LOADED.get(tag) in values:
            self.loaded.append(values[LOADED[tag]])


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site once; a warning ends the build with an error.

    The build writes stubs next to the pages, so each worker process builds a copy.
    """
    folder = tmp_path_factory.mktemp("documentation")
    for name in ("docs", "scripts"):
        ignored = shutil.ignore_patterns("generated", "__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for page in ROOT.glob("*.md"):
        shutil.copy(page, folder)
    target = folder / "site"
    done = subprocess.run(
        [str(folder / "scripts" / "build_docs"), str(target)],
        env=os.environ | {"PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(scope="session")
def pages(site: Path) -> dict[Path, Page]:
    paths = [path for path in site.rglob("*.html") if "_static" not in path.parts]  # templates
    return {path: Page(path.read_text(encoding="utf-8")) for path in paths}


def content(site: Path, name: str) -> str:
    return (site / "reference" / name).read_text(encoding="utf-8")


def test_every_public_name_has_a_page(site: Path) -> None:
    index = content(site, "python.html")
    for name in feta.__all__:
        (link,) = set(re.findall(rf'href="(generated/[^"#]+)#feta\.{name}"', index))
        assert f'id="feta.{name}"' in content(site, link)


@pytest.mark.parametrize("name", ["CEFairClassifier", "FairClassifier", "FairRegressor"])
def test_inherited_methods_of_estimators_are_on_their_page(site: Path, name: str) -> None:
    page = content(site, f"generated/feta.{name}.html")
    methods = set(re.findall(rf'id="feta\.{name}\.(\w+)"', page))
    shares = set() if name == "FairRegressor" else {"predict_proba"}
    assert methods == {"fit", "predict", "explain"} | shares


def test_no_two_pages_differ_only_in_the_case_of_letters(pages: dict[Path, Page]) -> None:
    assert len({str(path).lower() for path in pages}) == len(pages)


def test_every_command_and_option_is_on_the_reference_page(site: Path) -> None:
    page = content(site, "command_line.html")
    group = typer.main.get_group(app)
    context = group.make_context("feta", [], resilient_parsing=True)
    names = group.list_commands(context)
    assert {"audit", "predict", "diff"} <= set(names)
    for name in names:
        command = group.get_command(context, name)
        assert command is not None
        for parameter in command.params:
            for option in parameter.opts:
                kind = "" if option.startswith("-") else "arg-"
                several = "..." if parameter.nargs == -1 else ""
                anchor = f"cmdoption-feta-{name}-{kind}{option.lstrip('-')}{several}"
                assert f'id="{anchor}"' in page, anchor


def test_every_link_leads_to_a_page_and_an_anchor(site: Path, pages: dict[Path, Page]) -> None:
    broken = []
    for path, page in pages.items():
        for link in page.links:
            address = urlsplit(link)
            if address.scheme or address.netloc:
                continue
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            anchor = unquote(address.fragment)
            anchors = pages[target].ids if target in pages else None
            if anchors is None or (anchor and anchor not in anchors):
                broken.append(f"{path.relative_to(site)} -> {link}")
    assert not broken


def test_pages_load_only_files_of_the_site(pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        assert page.loaded
        for address in page.loaded:
            parts = urlsplit(address)
            assert not parts.scheme, address
            assert not parts.netloc, address
            assert (path.parent / unquote(parts.path)).exists(), address


def test_styles_load_only_files_of_the_site(site: Path) -> None:
    styles = list(site.rglob("*.css"))
    assert styles
    for path in styles:
        text = path.read_text(encoding="utf-8")
        for address in re.findall(r"(?:url\(|@import)\s*[\"']?([^\"')\s;]+)", text):
            if not address.startswith(("data:", "#")):
                target = path.parent / urlsplit(address).path
                assert target.exists(), f"{path.name} -> {address}"


def test_scripts_work_without_a_server(site: Path) -> None:
    search = (site / "search.html").read_text(encoding="utf-8")
    assert 'src="searchindex.js"' in search
    assert 'type="module"' not in search  # browsers refuse modules on file://
    assert "SHOW_SEARCH_SUMMARY: false" in (
        site / "_static" / "documentation_options.js"
    ).read_text(encoding="utf-8")
    assert "theme-switch" in search


@pytest.mark.parametrize(
    "page",
    [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_links_between_pages_also_work_in_the_repository(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        address = urlsplit(link)
        if not address.scheme and address.path:
            assert (page.parent / address.path).is_file(), link


def test_pages_have_names_and_lists_that_screen_readers_understand(pages: dict[Path, Page]) -> None:
    """What `docs/extensions/accessible_pages.py` corrects; the campaign has all rules."""
    for path, page in pages.items():
        assert not re.search(r"<summary><", page.text), path
        assert not re.search(r"<dl>\s*<dd>", page.text), path
        assert not re.search(r"</dt>\s*</dl>", page.text), path
        assert not re.search(r"<th[^>]*>(<p></p>)?</th>", page.text), path
        wide = re.search(r'navbar-persistent--container">\s*(<button[^>]*>)', page.text)
        assert wide, path
        assert "aria-label" not in wide[1], path
