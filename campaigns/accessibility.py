"""Campaign of accessibility: axe-core in Chromium on reports, the site and the page.

    python -m campaigns.accessibility [--pictures FOLDER] [--site FOLDER]

The reports (audit, comparison, everybody) are about the model of `feta demo`; the what-if page is
served by `feta serve`; the site is built by `scripts/build_docs`. Reports and the what-if page are
checked at 1200 and at 400 pixels, light and dark, and reports also in print; pages of the site at
1200 light and at 400 dark. No rule of axe-core may be violated, no page may be wider than the
window, and the first screen of the report must fit in 1200 by 900 pixels. The package comes from
npm into a temporary folder; node, npm, playwright and an installed Chromium are needed.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from campaigns.result import finish
from tests.serve.service import serving

ROOT = Path(__file__).parents[1]
SIZES = ((1200, 900), (400, 800))
SCHEMES = ("light", "dark")

# Milliseconds, only against hanging.
PATIENCE = 300_000

# What axe-core could not decide is listed, because a person must look at it.
RUN = """
async () => {
  const found = await axe.run(document, {resultTypes: ["violations", "incomplete"]});
  const brief = (rules) => rules.map((rule) => [rule.id, rule.nodes.length,
    rule.nodes.slice(0, 3).map((node) => node.target.join(" "))]);
  return {violations: brief(found.violations), incomplete: brief(found.incomplete),
          passes: found.passes.length, width: document.documentElement.scrollWidth};
}
"""


def run(*command: str | Path, folder: Path, codes: tuple[int, ...] = (0,)) -> None:
    """Run a command; raise with its output if it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in codes, f"{command}\n{done.stdout}\n{done.stderr}"


def axe(folder: Path, package: str) -> str:
    """Install axe-core, and return its script."""
    npm = shutil.which("npm")
    assert npm is not None, "npm is not installed"
    run(npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", package, folder=folder)
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def reports(folder: Path) -> dict[str, str]:
    """Write the reports about the model of the demo; return their addresses."""
    feta = (sys.executable, "-m", "feta")
    run(*feta, "demo", "--out", "demo", folder=folder)
    table = ("--data", "demo/people.csv", "--label", "credit")
    run(
        *feta,
        "audit",
        "demo/model.feta",
        *table,
        "--out",
        "audit",
        "--certify",
        folder=folder,
        codes=(1,),
    )
    run(
        *feta,
        "compare",
        "demo/model.feta",
        *table,
        "--epochs",
        "2",
        "--out",
        "compared",
        folder=folder,
    )
    everybody = ("prove", "demo/model.feta", "--seconds", "5", "--out", "everybody.html")
    run(*feta, *everybody, folder=folder, codes=(0, 1, 3))
    return {
        "report": (folder / "audit" / "report.html").as_uri(),
        "everybody": (folder / "everybody.html").as_uri(),
        "comparison": (folder / "compared" / "comparison.html").as_uri(),
    }


def site(folder: Path, built: Path | None) -> dict[str, str]:
    """Build the site if there is none; return the addresses of its pages."""
    target = built or folder / "site"
    if built is None:
        os.environ["PYTHON"] = sys.executable
        run(ROOT / "scripts" / "build_docs", target, folder=folder)
    pages = sorted(path for path in target.rglob("*.html") if "_static" not in path.parts)
    return {path.relative_to(target).as_posix(): path.as_uri() for path in pages}


@contextmanager
def served(model: Path) -> Iterator[dict[str, str]]:
    """Serve the what-if page of a model."""
    with serving(model) as server:
        yield {"what-if page": server.url}


def check(
    browser: Any,  # noqa: ANN401 - playwright's browser
    name: str,
    address: str,
    script: str,
    pictures: Path | None,
) -> Counter[str]:
    """Check a page in each size and scheme, and a report in print."""
    counts: Counter[str] = Counter()
    of_site = name.endswith(".html")
    looks = [(size, scheme, "screen") for size in SIZES for scheme in SCHEMES]
    looks = [looks[0], looks[-1]] if of_site else looks
    if name in ("report", "comparison", "everybody"):
        looks.append(((794, 1123), "light", "print"))
    for (width, height), scheme, media in looks:
        options = {"viewport": {"width": width, "height": height}, "color_scheme": scheme}
        context = browser.new_context(**options, bypass_csp=True)  # the page allows no script
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.emulate_media(media=media, color_scheme=scheme)
        page.goto(address)
        if name == "what-if page":
            page.wait_for_selector("#map svg")
        page.evaluate(script)
        found = page.evaluate(RUN)
        counts["pages"] += 1
        counts["rules passed"] += found["passes"]
        counts["rules that axe-core could not decide"] += len(found["incomplete"])
        for rule, nodes, targets in found["violations"]:
            counts["WRONG: violations"] += 1
            print(f"{name} at {width}, {scheme}, {media}: {rule}, {nodes} elements: {targets}")
        if found["width"] > width:
            counts["WRONG: wider than the window"] += 1
            print(f"{name} at {width}, {scheme}, {media}: {found['width']} pixels wide")
        if name == "report" and (width, media) == (1200, "screen"):
            bottom = page.evaluate(
                "document.querySelector('header').getBoundingClientRect().bottom"
            )
            counts["WRONG: the first screen is too long"] += bottom > height
        if pictures is not None and "/" not in name:
            file = f"{name.removesuffix('.html')}-{width}-{scheme}-{media}.png".replace(" ", "_")
            page.screenshot(path=pictures / file, full_page=True)
        context.close()
    return counts


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--package", default="axe-core@4.14.1")
    parser.add_argument("--pictures", type=Path, help="folder for screenshots")
    parser.add_argument("--site", type=Path, help="a site that is built already")
    options = parser.parse_args()
    started = time.perf_counter()
    if options.pictures is not None:
        options.pictures.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    counts: Counter[str] = Counter({"WRONG: violations": 0})
    with tempfile.TemporaryDirectory() as name, sync_playwright() as running:
        folder = Path(name)
        script = axe(folder, options.package)
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        pages = reports(folder) | site(folder, options.site)
        with served(folder / "demo" / "model.feta") as page:
            for title, address in (page | pages).items():
                counts += check(browser, title, address, script, options.pictures)
                print(f"checked {title}", flush=True)
        print(f"Chromium {browser.version}, {options.package}")
        browser.close()
    sys.exit(finish(counts, started))


if __name__ == "__main__":
    main()
