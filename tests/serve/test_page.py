"""The what-if page in a real browser, compared with FETA."""

import json
import shutil
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from feta import (
    Categorical,
    FairPredictor,
    FeatureSpace,
    Integer,
    Model,
    Network,
    Real,
    Threshold,
    save_model,
)
from tests import oracle
from tests.serve.conftest import wait_until_ready
from tests.serve.service import Server, serving

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

# Without these, the browser itself asks addresses outside.
OPTIONS = (
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-first-run",
)

SPACE = FeatureSpace(
    (
        Integer("age", 18, 27, sensitive=True),
        Categorical("sex", ("female", "male"), sensitive=True),
        Categorical("region", ("north", "<b>south</b>", "west"), sensitive=True),
        Integer("income", 0, 60),
        Real("debt", 0, 10, strict=True),
        Categorical("town", ("a", "b"), missing=True),
    )
)


def make_model() -> Model:
    rng = np.random.default_rng(4)
    scales = [30, 4, 4, 4, 4, 4, 20, 4, 1, 1, 1]
    layers = [
        (rng.normal(size=(6, SPACE.width)) / scales, rng.normal(size=6)),
        (rng.normal(size=(1, 6)), np.zeros(1)),
    ]
    network = Network.from_layers(layers)
    middle = float(np.median(network(SPACE.encode(people(100)))))
    return Model(SPACE, network, Threshold(middle), outcomes=("refused", "approved"))


def people(count: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(1)
    return [
        {
            "age": int(rng.integers(18, 28)),
            "sex": str(rng.choice(["female", "male"])),
            "region": ("north", "<b>south</b>", "west")[rng.integers(3)],
            "income": int(rng.integers(0, 61)),
            "debt": round(float(rng.uniform(0, 10)), 2),
            "town": (None, "a", "b")[rng.integers(3)],
        }
        for _ in range(count)
    ]


MODEL = make_model()
PREDICTOR = FairPredictor(MODEL)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    path = tmp_path_factory.mktemp("page") / "credit.feta"
    save_model(PREDICTOR, path)
    with serving(path) as server:
        wait_until_ready(server)
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=CHROMIUM, args=list(OPTIONS))
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Any, address: Server) -> Iterator[Any]:  # noqa: ANN401 - optional package
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    opened = context.new_page()
    problems: list[str] = []
    opened.on("console", lambda message: problems.append(message.text))
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on(
        "request", lambda request: problems.append(request.url) if outside(request.url) else 0
    )

    def outside(url: str) -> bool:
        return not url.startswith((address.url, "data:", "blob:"))

    visit(opened, address, people(1)[0])
    yield opened
    context.close()
    assert problems == []


def visit(page: Any, address: Server, person: dict[str, Any]) -> None:  # noqa: ANN401 - optional
    page.goto("about:blank")
    page.goto(f"{address.url}/#{urllib.parse.quote(json.dumps(person))}")
    page.wait_for_selector("#map svg")


def cells(page: Any) -> list[int]:  # noqa: ANN401 - optional package
    """Return the drawn decisions, row by row."""
    drawn = page.eval_on_selector_all(
        "#map rect[data-decision]", "n => n.map(r => r.dataset.decision)"
    )
    return [int(decision) for decision in drawn]


def expected_cells(person: dict[str, Any], across: str, down: str, **fixed: Any) -> list[int]:  # noqa: ANN401
    values = {a.name: oracle.values_of(a) for a in SPACE.sensitive}
    return [
        oracle.decide(MODEL, SPACE.encode(person | fixed | {across: x, down: y})[0])
        for y in values[down]
        for x in values[across]
    ]


def test_ten_people_are_shown_as_feta_decides(page: Any, address: Server) -> None:  # noqa: ANN401
    headlines = set()
    for person in people(10):
        visit(page, address, person)
        row = SPACE.encode(person)[0]
        fair = MODEL.outcomes[int(PREDICTOR.decide(row[None])[0])]
        assert page.text_content("#own") == MODEL.outcomes[oracle.decide(MODEL, row)]
        assert page.text_content("#fair") == fair
        votes = oracle.tally(MODEL, row)[MODEL.outcomes.index(fair)]
        assert page.text_content("#share") == f"{votes} of 60"
        assert cells(page) == expected_cells(person, "age", "region")
        headline = page.text_content("#headline")
        assert ("Proved" in headline) == oracle.is_fair(MODEL, row)
        assert ("instead of" in page.text_content("#pair")) != oracle.is_fair(MODEL, row)
        assert page.locator("#map .here").count() == 1
        headlines.add(headline)
    assert len(headlines) == 2
    assert "<b>south</b>" in page.inner_text("#sensitive")


def test_every_control(page: Any) -> None:  # noqa: ANN401 - optional package
    person = people(1)[0]
    other = "male" if person["sex"] == "female" else "female"
    page.locator("#sliders input").fill("1" if other == "male" else "0")
    assert page.text_content("#sliders output") == other
    assert cells(page) == expected_cells(person, "age", "region", sex=other)
    page.select_option("#down", label="sex")
    assert cells(page) == expected_cells(person, "age", "sex")
    page.select_option("#across", label="sex")
    assert cells(page) == expected_cells(person, "sex", "age")

    page.get_by_label("income", exact=True).fill("12")
    page.select_option("#shared select", label="(missing)")
    changed = person | {"income": 12, "town": None}
    shown = expected_cells(changed, "sex", "age")
    page.wait_for_selector("main[aria-busy=false]")
    assert cells(page) == shown

    with page.expect_download() as saved:
        page.get_by_role("button", name="Download the evidence").click()
    evidence = json.loads(Path(saved.value.path()).read_text())
    assert evidence["person"] == changed
    assert evidence["fingerprint"] == MODEL.fingerprint
    page.get_by_role("button", name="Copy a link").click()
    page.wait_for_selector("#note:not(:empty)")
    fragment = urllib.parse.unquote(page.url.partition("#")[2])
    assert json.loads(fragment) == changed


def test_reasons_of_the_page_are_the_smallest_changes(page: Any, address: Server) -> None:  # noqa: ANN401
    shown = set()
    for person in people(6):
        visit(page, address, person)
        page.wait_for_selector("main[aria-busy=false]")
        page.get_by_role("button", name="Find the smallest change").click()
        assert page.text_content("#reason") == "Choose at least one column that may change."
        page.get_by_label("income …").select_option(label="may only grow")
        assert page.text_content("#reason") == ""
        page.get_by_role("button", name="Find the smallest change").click()
        page.wait_for_selector("#reason:has-text('decision is')")
        reason = page.text_content("#reason")
        assert not [a.name for a in SPACE.sensitive if f"{a.name} is" in reason]
        reached = [
            income
            for income in range(person["income"], 61)
            if PREDICTOR.decide(SPACE.encode(person | {"income": income}))[0]
        ]
        if reached and reached[0] == person["income"]:
            assert reason == "The decision is approved already."
        elif reached:
            words = f"income is too low ({person['income']}; {reached[0]} would have been approved)"
            assert words in reason
            assert "Proved" in reason
        else:
            assert "No allowed change of these columns makes it approved" in reason
        shown.add(reason)
        page.get_by_label("income", exact=True).fill("1")
        page.wait_for_selector("#reason:empty", state="attached")
    assert len(shown) > 1


def test_an_invalid_value_is_marked_and_nothing_is_shown(browser: Any, address: Server) -> None:  # noqa: ANN401
    page = browser.new_page()  # its console notes the refused request
    visit(page, address, people(1)[0])
    page.get_by_label("debt", exact=True).fill("11")
    page.wait_for_selector(".field.bad")
    assert "'debt' is invalid: got 11" in page.text_content("#problem")
    assert page.get_by_label("debt", exact=True).get_attribute("aria-invalid") == "true"
    assert page.locator("#map svg").count() == 0
    assert page.locator("#tiles").is_hidden()
    page.get_by_label("debt", exact=True).fill("9")
    page.wait_for_selector("#map svg")
    assert page.locator(".field.bad").count() == 0
    page.close()


def test_the_keyboard_reaches_everything(page: Any) -> None:  # noqa: ANN401 - optional package
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.type"))
    fields = [f"column-{index}" for index in range(6)]
    assert {*fields, "link", "download", "across", "down", "range", "map"} <= set(reached)
    page.focus("#map")
    page.keyboard.press("ArrowRight")
    first = page.text_content("#cell")
    page.keyboard.press("ArrowLeft")
    assert page.text_content("#cell") != first
    assert page.text_content("#cell").endswith(("refused", "approved"))
    assert page.get_attribute("#map", "aria-label").startswith("Decisions of 30 combinations: ")
    unnamed = page.eval_on_selector_all(
        "input, select",
        "n => n.filter(i => !i.labels.length && !i.ariaLabel && i.offsetParent).length",
    )
    assert unnamed == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 390, 768])
def test_a_phone_shows_everything_without_scrolling_sideways(
    browser: Any,  # noqa: ANN401 - optional package
    address: Server,
    width: int,
    scheme: str,
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    visit(page, address, people(1)[0])
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#map svg").bounding_box()["width"] <= width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 23, 27)")
    context.close()
