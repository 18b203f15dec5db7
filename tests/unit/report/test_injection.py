"""No name or value comes alive in what is handed over."""

import pytest

pytest.importorskip("html5lib", reason="html5lib is not installed")

import json
import re
import shutil
import subprocess
from collections import Counter
from html import escape
from pathlib import Path
from xml.etree import ElementTree as ET

import html5lib
from markdown_it import MarkdownIt

from feta.report.diff import Diff
from feta.report.diff_formats import diff_junit, diff_markdown
from feta.report.gate import Gate
from feta.report.html import html
from feta.report.junit import junit
from feta.report.markdown import markdown
from tests.payloads import PAYLOADS, evil_report

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')

# Runs in the page around the reports: what became of each, as a browser reads it.
LOOK = """
addEventListener("load", () => {
  const seen = [...document.querySelectorAll("iframe")].map((frame) => {
    const tags = {}, names = {};
    for (const one of frame.contentDocument.querySelectorAll("*")) {
      tags[one.tagName.toLowerCase()] = (tags[one.tagName.toLowerCase()] || 0) + 1;
      for (const other of one.attributes) names[other.name] = 1;
    }
    return [tags, Object.keys(names).sort()];
  });
  document.body.textContent = "SEEN" + JSON.stringify([seen, alive]) + "SEEN";
});
"""


def shape(page: str) -> tuple[Counter[str], set[str]]:
    """Count a page's elements, read as the HTML standard says; breaks in long words go without saying."""
    tree = html5lib.parse(page, namespaceHTMLElements=False)
    elements = [one for one in tree.iter() if isinstance(one.tag, str)]
    tags = Counter(one.tag.split("}")[-1] for one in elements)
    del tags["wbr"]
    return tags, {name for one in elements for name in one.attrib}


HARMLESS = shape(html(evil_report("harmless")))


def test_there_are_more_than_forty_payloads() -> None:
    assert len(set(PAYLOADS)) >= 50


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_payload_is_alive_in_any_format(payload: str) -> None:
    report = evil_report(payload)
    assert report.pairs
    page = html(report)
    assert shape(page) == HARMLESS
    assert not {"script", "img", "iframe", "a", "link", "object"} & set(HARMLESS[0])
    for text in (page, markdown(report), junit(report)):
        assert all(one.isprintable() or one == "\n" for one in text)
    told = markdown(report)
    assert not re.search(r"<|https?://|www\.|\]\(|(?<!&)#1|@[a-z]", told, re.IGNORECASE)
    assert {line.count("|") for line in told.splitlines() if line.startswith("|")} == {5}
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(told)
    page_of = {"html", "head", "body"}
    bland = {"h1", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "code"}
    assert set(shape(rendered)[0]) <= bland | page_of
    suite = ET.fromstring(junit(report))
    assert {one.tag for one in suite.iter()} <= {"testsuite", "testcase", "failure", "system-out"}


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_payload_is_alive_in_a_diff(payload: str) -> None:
    counts = [("people", 2, 2), ("unfair", 0, 1), ("undecided", 0, 0), ("not_audited", 0, 0)]
    figures = (*counts, (f"{payload} alone", 0, 1))
    found = Diff(figures, True, True, (payload,), False, ((payload, "unfair", 1),), (payload,))
    told = diff_markdown(found, Gate())
    assert not re.search(r"<|https?://|www\.|\]\(|(?<!&)#1|@[a-z]", told, re.IGNORECASE)
    assert {line.count("|") for line in told.splitlines() if line.startswith("|")} == {5}
    suite = ET.fromstring(diff_junit(found, Gate()))
    assert {one.tag for one in suite.iter()} <= {"testsuite", "testcase", "error", "system-out"}
    for text in (told, diff_junit(found, Gate())):
        assert all(one.isprintable() or one == "\n" for one in text)


def seen_by_a_browser(
    pages: list[str], folder: Path
) -> tuple[list[tuple[dict[str, int], list[str]]], list[int]]:
    """Open pages side by side with scripts on; give their elements, and which of them ran something."""
    frames = []
    for index, page in enumerate(pages):
        spy = f"<script>alert = () => parent.alive.push({index}); document.currentScript.remove()</script>"
        frames.append(
            f'<iframe srcdoc="{escape(page.replace("<head>", f"<head>{spy}", 1))}"></iframe>'
        )
    around = folder / "around.html"
    around.write_text(
        f"<body><script>alive = [];{LOOK}</script>{''.join(frames)}", encoding="utf-8"
    )
    assert CHROMIUM
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'user'}"]
    done = subprocess.run(
        [CHROMIUM, *options, "--virtual-time-budget=20000", "--dump-dom", around.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    told = re.search(r"SEEN(.*)SEEN", done.stdout, re.DOTALL)
    assert told, done.stderr
    seen, alive = json.loads(told.group(1))
    return [(tags, names) for tags, names in seen], alive


@pytest.mark.skipif(CHROMIUM is None, reason="no browser here; html5lib reads the same pages above")
def test_no_payload_runs_in_a_browser(tmp_path: Path) -> None:
    pages = [html(evil_report(one)) for one in ["harmless", *PAYLOADS]]
    assert all(POLICY.search(page) for page in pages)
    # Without the policy, which alone would already keep everything from running.
    pages = [POLICY.sub("", page) for page in pages]
    told = "<p>harmless" + PAYLOADS[0] + PAYLOADS[1]
    caught = pages[0].replace("<h1>", f"<h1>{told}", 1)
    seen, alive = seen_by_a_browser([*pages, caught], tmp_path)
    assert set(alive) == {len(pages)}  # the one that shows that this test would notice
    for tags, _ in seen:
        tags.pop("wbr", None)
    assert all(one == seen[0] for one in seen[:-1])
    assert seen[-1] != seen[0]
