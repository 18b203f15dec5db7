"""Campaign of fair decisions as ONNX graphs in a browser, with onnxruntime-web.

    python -m campaigns.fair_onnx_browser [--people 20000] [--package onnxruntime-web@1.30.0]

The graphs of the model of `feta demo` (German credit) with each vote run in Chromium, on random
people of its space. Sure decisions are compared with `FairPredictor`. The package comes from npm
into a temporary folder; node, npm, playwright and an installed Chromium are needed. The page may
ask nothing of any other host.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

from campaigns.fair_onnx import PRECISIONS, german
from campaigns.result import finish
from feta import FairPredictor
from feta.arrays import Answers, Flags, Matrix
from feta.io.fair_onnx.graph import Precision
from feta.io.fair_onnx.write import write_fair_onnx
from feta.space.sampling import draw_people
from feta.vote.mean_decision import VOTES

# People per call of the graph: their counterparts' values are in the browser's memory at once.
BATCH = 250

PAGE = """<!doctype html><meta charset="utf-8"><title>Fair decisions</title>
<link rel="icon" href="data:,"><script src="/node_modules/onnxruntime-web/dist/ort.wasm.min.js">
</script><script src="/run.js"></script>"""

SCRIPT = """
"use strict";
ort.env.wasm.numThreads = 1;
ort.env.wasm.wasmPaths = "/node_modules/onnxruntime-web/dist/";

async function run({graph, people, columns, precision, batch}) {
  const session = await ort.InferenceSession.create(graph, {executionProviders: ["wasm"]});
  const content = await (await fetch(people)).arrayBuffer();
  const rows = precision === "float64" ? new Float64Array(content) : new Float32Array(content);
  const decisions = [], sure = [], started = performance.now();
  for (let start = 0; start < rows.length; start += batch * columns) {
    const part = rows.slice(start, start + batch * columns);
    const input = new ort.Tensor(precision, part, [part.length / columns, columns]);
    const output = await session.run({people: input});
    decisions.push(...Array.from(output.decision.data, Number));
    sure.push(...Array.from(output.sure.data, Number));
  }
  return {decisions, sure, seconds: (performance.now() - started) / 1000};
}
"""


class QuietHandler(SimpleHTTPRequestHandler):
    """Files of a folder, without a line per request."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class
        """Print nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on a free port of this machine; yield its address."""
    handler = partial(QuietHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def prepare(folder: Path, package: str) -> None:
    """Install the runtime, and write the page."""
    npm = shutil.which("npm")
    assert npm is not None, "npm is not installed"
    command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent", package]
    subprocess.run(command, cwd=folder, check=True)
    (folder / "index.html").write_text(PAGE, encoding="utf-8")
    (folder / "run.js").write_text(SCRIPT, encoding="utf-8")


def run_in(
    page: Any,  # noqa: ANN401 - playwright's page
    folder: Path,
    predictor: FairPredictor,
    people: Matrix,
    precision: Precision,
) -> tuple[Answers, Flags, float]:
    """Return decisions, which are sure, and milliseconds per person."""
    columns = write_fair_onnx(predictor, folder / "fair.onnx", precision=precision).columns
    rows = people[:, columns].astype(precision)
    (folder / "people.bin").write_bytes(np.ascontiguousarray(rows).tobytes())
    question = {
        "graph": f"/fair.onnx?{time.monotonic_ns()}",
        "people": f"/people.bin?{time.monotonic_ns()}",
        "columns": len(columns),
        "precision": precision,
        "batch": BATCH,
    }
    answer = page.evaluate("question => run(question)", question)
    decisions, sure = np.array(answer["decisions"]), np.array(answer["sure"], dtype=bool)
    return decisions, sure, answer["seconds"] / len(rows) * 1e3


def compare(page: Any, folder: Path, n_people: int) -> Counter[str]:  # noqa: ANN401 - playwright's page
    """Compare the sure decisions of each vote and precision with the predictor's."""
    counts: Counter[str] = Counter()
    model, table = german()
    people = draw_people(model.space, np.random.default_rng(1), n_people)
    predictors = [FairPredictor(model)]
    predictors += [FairPredictor.fitted(model, table, vote) for vote in VOTES[1:]]
    for predictor in predictors:
        right = predictor.decide(people)
        for precision in PRECISIONS:
            decisions, sure, cost = run_in(page, folder, predictor, people, precision)
            wrong = int((decisions != right)[sure].sum())
            print(
                f"{predictor.vote}, {precision}: {sure.sum()} of {len(people)} sure "
                f"({sure.mean():.3%}), {wrong} wrong, {cost:.2f} ms per person",
                flush=True,
            )
            counts[f"{precision} sure"] += int(sure.sum())
            counts[f"{precision} not sure"] += int((~sure).sum())
            counts["WRONG decisions"] += wrong + len(people) - len(decisions)
    return counts


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=20_000)
    parser.add_argument("--package", default="onnxruntime-web@1.30.0")
    options = parser.parse_args()
    started, problems = time.perf_counter(), list[str]()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as running:
        folder = Path(name)
        prepare(folder, options.package)
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        with served(folder) as address:
            page = browser.new_page()
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.on("request", lambda request: problems.append(request.url))
            page.goto(address)
            counts = compare(page, folder, options.people)
        outside = [text for text in problems if not text.startswith((address, "data:", "blob:"))]
        print(f"Chromium {browser.version}, {options.package}; {len(outside)} outside or errors")
        counts["WRONG requests or errors"] = len(outside)
        browser.close()
    sys.exit(finish(counts, started))


if __name__ == "__main__":
    main()
