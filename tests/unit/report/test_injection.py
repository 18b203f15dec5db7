"""No name or value becomes active content in a report."""

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

# Runs in the page around the reports: lists the elements of each as the browser parsed them.
INSPECT = """
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
    """Count the elements of a page, parsed by the HTML standard, without breaks in long words."""
    tree = html5lib.parse(page, namespaceHTMLElements=False)
    elements = [element for element in tree.iter() if isinstance(element.tag, str)]
    tags = Counter(element.tag.split("}")[-1] for element in elements)
    del tags["wbr"]
    return tags, {name for element in elements for name in element.attrib}


HARMLESS = shape(html(evil_report("harmless")))


def test_payloads_are_at_least_fifty() -> None:
    assert len(set(PAYLOADS)) >= 50


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_payload_is_active_in_any_format(payload: str) -> None:
    report = evil_report(payload)
    assert report.pairs
    page = html(report)
    assert shape(page) == HARMLESS
    assert not {"script", "img", "iframe", "a", "link", "object"} & set(HARMLESS[0])
    for output in (page, markdown(report), junit(report)):
        assert all(character.isprintable() or character == "\n" for character in output)
    text = markdown(report)
    assert not re.search(r"<|https?://|www\.|\]\(|(?<!&)#1|@[a-z]", text, re.IGNORECASE)
    assert {line.count("|") for line in text.splitlines() if line.startswith("|")} == {5}
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    page_of = {"html", "head", "body"}
    bland = {"h1", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "code"}
    assert set(shape(rendered)[0]) <= bland | page_of
    suite = ET.fromstring(junit(report))
    assert {element.tag for element in suite.iter()} <= {
        "testsuite",
        "testcase",
        "failure",
        "system-out",
    }


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_payload_is_active_in_a_diff(payload: str) -> None:
    counts = [("people", 2, 2), ("unfair", 0, 1), ("undecided", 0, 0), ("not_audited", 0, 0)]
    figures = (*counts, (f"{payload} alone", 0, 1))
    diff = Diff(figures, True, True, (payload,), False, ((payload, "unfair", 1),), (payload,))
    text = diff_markdown(diff, Gate())
    assert not re.search(r"<|https?://|www\.|\]\(|(?<!&)#1|@[a-z]", text, re.IGNORECASE)
    assert {line.count("|") for line in text.splitlines() if line.startswith("|")} == {5}
    suite = ET.fromstring(diff_junit(diff, Gate()))
    assert {element.tag for element in suite.iter()} <= {
        "testsuite",
        "testcase",
        "error",
        "system-out",
    }
    for output in (text, diff_junit(diff, Gate())):
        assert all(character.isprintable() or character == "\n" for character in output)


def open_in_browser(
    pages: list[str], folder: Path
) -> tuple[list[tuple[dict[str, int], list[str]]], list[int]]:
    """Open pages with scripts enabled; return their elements, and which of them ran a script."""
    frames = []
    for index, page in enumerate(pages):
        report_alert = f"alert = () => parent.alive.push({index});"
        spy = f"<script>{report_alert} document.currentScript.remove()</script>"
        frames.append(
            f'<iframe srcdoc="{escape(page.replace("<head>", f"<head>{spy}", 1))}"></iframe>'
        )
    outer_page = folder / "around.html"
    outer_page.write_text(
        f"<body><script>alive = [];{INSPECT}</script>{''.join(frames)}", encoding="utf-8"
    )
    assert CHROMIUM
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'user'}"]
    done = subprocess.run(
        [CHROMIUM, *options, "--virtual-time-budget=20000", "--dump-dom", outer_page.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    output = re.search(r"SEEN(.*)SEEN", done.stdout, re.DOTALL)
    assert output, done.stderr
    elements, ran_scripts = json.loads(output.group(1))
    return [(tags, names) for tags, names in elements], ran_scripts


@pytest.mark.skipif(CHROMIUM is None, reason="no browser here; html5lib reads the same pages above")
def test_no_payload_runs_in_a_browser(tmp_path: Path) -> None:
    pages = [html(evil_report(payload)) for payload in ["harmless", *PAYLOADS]]
    assert all(POLICY.search(page) for page in pages)
    # Without the policy, which by itself would prevent every script.
    pages = [POLICY.sub("", page) for page in pages]
    payload_texts = "<p>harmless" + PAYLOADS[0] + PAYLOADS[1]
    vulnerable_page = pages[0].replace("<h1>", f"<h1>{payload_texts}", 1)
    elements, ran_scripts = open_in_browser([*pages, vulnerable_page], tmp_path)
    assert set(ran_scripts) == {len(pages)}  # the page that proves that this test can fail
    for tags, _ in elements:
        tags.pop("wbr", None)
    assert all(page == elements[0] for page in elements[:-1])
    assert elements[-1] != elements[0]
