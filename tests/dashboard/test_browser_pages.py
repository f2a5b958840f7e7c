"""All pages in a real browser: no external requests, no errors, accessible."""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from ackscope.reports import Step
from dashboard.pages import PAGES
from tests.dashboard import answers, rollup_files
from tests.dashboard.answers import HOSTILE
from tests.dashboard.broker_lists import shop
from tests.dashboard.browser import chromium, quiet
from tests.dashboard.command import serving_page

pytestmark = [pytest.mark.browser, pytest.mark.slow]
expect.set_options(timeout=60_000)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The real command with a sick cluster and one with hostile names; both have lists and history."""
    folder = tmp_path_factory.mktemp("pages")
    root = folder / "rollups"
    for name in ("shop", "hostile"):
        rollup_files.write_story(root, minutes=60, cluster=name)
    with (
        answers.serving(answers.sick("shop"), answers.hostile("hostile")) as exporter,
        serving_page(exporter.url, root, folder) as page,
    ):
        exporter.lists = {"shop": shop(many=50), "hostile": shop(HOSTILE, HOSTILE, cluster="hostile")}
        yield page.url


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests of this file."""
    with chromium() as started:
        yield started


@pytest.fixture
def opened(browser: Browser) -> Iterator[Page]:
    """A page of desktop width."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(60_000)
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("path", [page.path for page in PAGES], ids=[page.title for page in PAGES])
def test_hostile_names_do_nothing_and_no_external_requests(served: str, opened: Page, path: str) -> None:
    """On any page: no script in a name runs, no request leaves the host, the browser logs no error."""
    asked: list[str] = []
    complaints: list[str] = []
    opened.on("request", lambda sent: asked.append(sent.url))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    opened.on("response", lambda came: complaints.append(f"{came.status} {came.url}") if came.status >= 400 else None)
    opened.goto(f"{served}/{path}?cluster=hostile")
    quiet(opened)

    assert opened.evaluate("() => window.hurt === undefined")
    assert 0 == opened.locator("img[src=x], [href^=javascript], [data-testid=stMain] script").count()
    assert [] == [url for url in asked if not url.startswith((served, "data:", "blob:"))]
    assert [] == [text for text in complaints if not _is_search(text)]


def _is_search(complaint: str) -> bool:
    """Streamlit's page first looks for its server below its own address; that error is expected."""
    if complaint.startswith("404 "):
        return complaint.endswith(("/_stcore/health", "/_stcore/host-config"))
    # What failed is reported again by its status, with its address.
    return complaint.startswith("Failed to load resource")


def test_everything_about_a_queue_is_on_one_screen(served: str, opened: Page) -> None:
    """At 1440 x 900: its finding, values, curves, prefetch and ledger; below them its flow, which a phone scrolls."""
    opened.set_viewport_size({"width": 1440, "height": 900})
    opened.goto(f"{served}/queues?cluster=shop&queue=orders.invoices&vhost=/&range=1h")
    opened.wait_for_function("() => document.querySelectorAll('.stPlotlyChart .main-svg').length >= 3")
    quiet(opened)

    for text in ("stands still", "Oldest message", "Rates and backlog", "Unacked messages against prefetch", "Ledger"):
        box = opened.get_by_text(text).first.bounding_box()
        assert box is not None, text
        assert box["y"] + box["height"] <= 900, text
    names = opened.locator("[class*=st-key-plain-chart-flow] .annotation-text").all_text_contents()
    assert any("orders.invoices" in name for name in names)
    assert any("invoice-worker" in name for name in names)
    opened.set_viewport_size({"width": 390, "height": 844})
    opened.wait_for_function(
        "() => document.querySelector('[class*=st-key-plain-chart-flow]').getBoundingClientRect().width >= 900"
    )
    assert opened.evaluate("() => document.documentElement.scrollWidth") <= 390


def test_a_line_of_the_timeline_has_its_time_on_one_line(served: str, opened: Page) -> None:
    """On a wide screen, and the sentence gets the rest of the width."""
    opened.set_viewport_size({"width": 1440, "height": 900})
    opened.goto(f"{served}/timeline?cluster=shop")
    cells = opened.locator(".st-key-plain-timeline tbody tr").first.locator("td")
    cells.first.wait_for()
    quiet(opened)
    boxes = [cells.nth(0).locator("code"), cells.nth(1).locator("code"), cells.nth(2).locator("> div")]
    when, severity, sentence = (each.evaluate("(it) => it.getBoundingClientRect().toJSON()") for each in boxes)

    assert max(when["height"], severity["height"]) < 30
    assert sentence["width"] > 900


@pytest.mark.parametrize("path", [page.path for page in PAGES], ids=[page.title for page in PAGES])
def test_pages_are_accessible(served: str, opened: Page, path: str) -> None:
    """axe-core finds no serious or critical violation, in light and in dark mode."""
    opened.goto(f"{served}/{path}?cluster=shop")

    assert {} == _serious(opened)
    opened.emulate_media(color_scheme="dark")
    opened.wait_for_function(
        "() => getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor === 'rgb(20, 23, 27)'"
    )
    assert {} == _serious(opened)


def _serious(page: Page) -> dict[str, list[str]]:
    """Violations that persist: a page that is redrawing on a busy machine fades its content."""
    found: dict[str, list[str]] = {}
    for _ in range(4):
        quiet(page)
        if not (found := _violations(page)):
            break
    return found


def _violations(page: Page) -> dict[str, list[str]]:
    """Violations by name, each with its first locations."""
    found: dict[str, Any] = Axe().run(page).response
    return {
        violation["id"]: [node["html"][:160] for node in violation["nodes"]][:3]
        for violation in found["violations"]
        if violation["impact"] in {"serious", "critical"}
    }


def test_a_box_selects_a_time_range_and_a_chart_can_be_saved(served: str, browser: Browser, tmp_path: Path) -> None:
    """In dark mode, in the reader's zone: a box in the heatmap becomes a time range in the address, in UTC."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 900}, color_scheme="dark", timezone_id="Asia/Kathmandu"
    )
    context.set_default_timeout(60_000)
    page, asked = context.new_page(), []
    page.goto(f"{served}/confirms?cluster=shop&tz=local")
    quiet(page)
    chart = page.locator(".st-key-plain-chart-heat")
    chart.locator(".g-xtitle", has_text="UTC+05:45").wait_for()
    chart.hover()
    page.on("request", lambda sent: asked.append(sent.url))
    with page.expect_download() as taken:
        chart.get_by_role("button", name="Download plot as a PNG").click()
    taken.value.save_as(tmp_path / "heat.png")

    assert re.fullmatch(r"confirms-heat-\d{4}-\d\d-\d\dT\d{4}Z\.png", taken.value.suggested_filename)
    assert (tmp_path / "heat.png").read_bytes().startswith(b"\x89PNG")
    assert [] == [url for url in asked if not url.startswith((served, "data:", "blob:"))]
    address = _draw_a_box(page, chart)
    page.get_by_role("button", name="Live").wait_for()

    start, end = (datetime.fromisoformat(address[name][0]).replace(tzinfo=UTC) for name in ("from", "to"))
    assert timedelta(minutes=5) <= end - start <= timedelta(minutes=30)
    assert timedelta(0) <= rollup_files.this_minute() - end < timedelta(hours=1)
    page.get_by_role("button", name="Live").click()
    page.wait_for_function("() => !location.search.includes('from=')")
    page.get_by_role("button", name="Live").wait_for(state="detached")
    context.close()


def _draw_a_box(page: Page, chart: Locator) -> dict[str, list[str]]:
    """Draw a box over a tenth of the heatmap until it is in the address; a refresh in between cancels it."""
    for _ in range(5):
        box = chart.locator(".nsewdrag").first.bounding_box()
        across = [box["x"] + box["width"] * share for share in (0.5, 0.55, 0.6)]
        page.mouse.move(across[0], box["y"] + 80)
        page.mouse.down()
        for x in across[1:]:
            page.mouse.move(x, box["y"] + 140, steps=4)
        page.mouse.up()
        with contextlib.suppress(PlaywrightTimeout):
            page.wait_for_function("() => location.search.includes('to=')", timeout=10_000)
            return parse_qs(urlsplit(page.url).query)
    raise AssertionError(page.url)


def test_from_a_finding_to_its_queue_and_back(served: str, opened: Page, tmp_path: Path) -> None:
    """One click from the finding to the queue; its address shows the same page; the browser's Back works."""
    opened.goto(f"{served}/?cluster=shop")
    quiet(opened)
    opened.get_by_text("Queue details").first.click()
    opened.wait_for_url("**/queues?**")
    opened.get_by_text("This queue has no consumer").or_(opened.get_by_text("invoice-worker")).first.wait_for()
    address = parse_qs(urlsplit(opened.url).query)
    opened.screenshot(path=str(tmp_path / "queue.png"))

    assert {"cluster": ["shop"], "queue": ["orders.invoices"], "vhost": ["/"]} == address
    opened.reload()
    quiet(opened)
    opened.get_by_role("heading", name="orders.invoices").wait_for()
    opened.go_back()
    opened.get_by_role("heading", name="1 critical, 1 warning").wait_for()


@pytest.mark.parametrize("width", [1280, 390])
def test_a_row_of_the_list_opens_its_queue(served: str, opened: Page, width: int) -> None:
    """With a click anywhere in it, in the same session; with the middle button in a new tab; Back leads to the list."""
    opened.set_viewport_size({"width": width, "height": 900})
    rows = _queues(served, opened, "&range=6h&sort=ready")
    opened.evaluate("() => { window.loadedOnce = true; }")
    rows.nth(0).click(position={"x": 340, "y": 20})
    opened.get_by_role("heading", name="orders.invoices").wait_for()
    address = parse_qs(urlsplit(opened.url).query)
    opened.go_back()
    rows.nth(1).wait_for()

    chosen = {"cluster": ["shop"], "range": ["6h"], "sort": ["ready"]}
    assert {**chosen, "queue": ["orders.invoices"], "vhost": ["/"]} == address
    assert opened.evaluate("() => window.loadedOnce")
    assert [] == opened.evaluate("() => performance.getEntries().filter((it) => it.name.includes('DataFrame'))")
    with opened.context.expect_page() as other:
        rows.nth(1).click(button="middle", position={"x": 340, "y": 20})
    other.value.get_by_role("heading", name="retry.loop").wait_for()
    assert {**chosen, "queue": ["retry.loop"], "vhost": ["/"]} == parse_qs(urlsplit(other.value.url).query)


def test_a_heading_sorts_the_list(served: str, opened: Page) -> None:
    """The box above says so, too, also after Back."""
    rows = _queues(served, opened, "")
    table, box = opened.locator(".st-key-queue-table"), opened.get_by_role("combobox", name="Sort by")
    expect(rows.first).to_contain_text("orders.invoices")
    table.get_by_role("columnheader", name="Queue").get_by_role("link").click()

    expect(rows.first).to_contain_text("idle.00000")
    expect(box).to_have_value("Name")
    expect(table.locator("[aria-sort=ascending]")).to_have_text("Queue")
    assert {"cluster": ["shop"], "sort": ["name"]} == parse_qs(urlsplit(opened.url).query)
    opened.go_back()
    expect(rows.first).to_contain_text("orders.invoices")
    expect(box).to_have_value("Most urgent")


def test_a_refresh_of_the_list_moves_nothing(served: str, opened: Page) -> None:
    """It stays where it was scrolled to, below its headings, and the focus stays on its link; Enter opens it."""
    opened.set_viewport_size({"width": 390, "height": 844})
    rows, table = _queues(served, opened, "&sort=name"), opened.locator(".st-key-queue-table")
    rows.nth(40).locator("a").focus()
    table.evaluate("(it) => { it.scrollLeft = 120; }")
    rows.nth(40).evaluate("(it) => { it.dataset.before = 'yes'; }")
    place, head = "(it) => [it.scrollLeft, it.scrollTop]", "(it) => it.getBoundingClientRect().top"
    before = table.evaluate(place)
    table.locator("[data-before]").wait_for(state="detached")

    assert before == table.evaluate(place)
    assert before[0] == 120
    assert before[1] > 500
    assert table.locator("thead th").first.evaluate(head) - table.evaluate(head) in {0, 1}
    assert opened.evaluate("() => document.documentElement.scrollWidth") <= 390
    expect(rows.nth(40).locator("a")).to_be_focused()
    opened.keyboard.press("Enter")
    opened.get_by_role("heading", name="idle.00040").wait_for()


def _queues(served: str, opened: Page, more: str) -> Locator:
    """The rows of the list."""
    opened.goto(f"{served}/queues?cluster=shop{more}")
    quiet(opened)
    return opened.locator(".st-key-queue-table tbody tr")


def test_search_and_sort_order_are_in_the_address(served: str, opened: Page) -> None:
    """A link shows the same list to somebody else."""
    opened.goto(f"{served}/queues?cluster=shop&sort=name&find=idle.0000%5B12%5D")
    quiet(opened)
    opened.get_by_text("queues, and 1 of probes, 2 match").first.wait_for()

    assert "idle.0000[12]" == opened.get_by_label("Find").input_value()


def test_a_proxy_may_serve_it_below_a_path(browser: Browser, tmp_path: Path) -> None:
    """Pages, health and links work below the base path."""
    with answers.serving(answers.sick("shop")) as exporter:
        exporter.lists = {"shop": shop()}
        with serving_page(exporter.url, tmp_path / "none", tmp_path, "/ops/ackscope") as page:
            opened = browser.new_page()
            opened.set_default_timeout(60_000)
            opened.goto(f"{page.url}/queues?cluster=shop")
            opened.get_by_text("3 queues").first.wait_for()
            opened.get_by_role("link", name="Consumers").click()
            opened.wait_for_url("**/ops/ackscope/consumers**")
            opened.get_by_text("3 consumers").first.wait_for()
            opened.close()


def test_every_finding_is_two_clicks_from_its_next_step(browser: Browser, tmp_path: Path) -> None:
    """Of twelve findings, the first one is shown in full, and each of the others after one click."""
    rules = [f"rule-{number:02}" for number in range(12)]
    found = tuple(
        replace(
            answers.stuck(f"orders.{rule}"),
            rule=rule,
            **answers.steps(Step(text="List its queues", command=f"rabbitmqctl list_queues -p {rule}")),
        )
        for rule in rules
    )
    with (
        answers.serving(replace(answers.sick("shop"), findings=found)) as exporter,
        serving_page(exporter.url, tmp_path / "none", tmp_path) as page,
    ):
        opened = browser.new_page(viewport={"width": 1280, "height": 900})
        opened.set_default_timeout(60_000)
        opened.goto(page.url)
        quiet(opened)
        clicks = {}
        for rule in rules:
            step = opened.get_by_text(f"rabbitmqctl list_queues -p {rule}").first
            clicks[rule] = 0
            if not step.is_visible():
                opened.locator(".st-key-finding-rows button:visible", has_text=rule).first.click()
                clicks[rule] = 1
            step.wait_for()
            opened.get_by_text(f"orders.{rule}").first.wait_for()
        opened.close()

    assert [0, *[1] * 11] == list(clicks.values())
