from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from ackscope.reports import FindingReport
from ackscope.tables import QUEUES_1M
from ackscope.triage import Triage
from dashboard.format.escape import visible
from tests.dashboard import answers, rollup_files
from tests.dashboard.answers import HOSTILE, Exporter
from tests.dashboard.browser import chromium, settle, still
from tests.dashboard.command import serving_page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WINDOWS = {"desk": (1280, 900), "large": (1440, 900), "phone": (390, 844)}
SIZES = ("desk", "phone")
CUT_CELLS = """() => [...document.querySelectorAll(".st-key-finding-rows button p > *")]
  .filter((it) => it.offsetWidth && it.scrollWidth > it.clientWidth + 1).map((it) => it.innerText)"""
"""JavaScript: text of the cells of the list of findings that are cut off."""
CUT_LABELS = 5
"""Names that are too long for their chart, or for a line of the list of findings."""


class Watched(NamedTuple):
    """A running dashboard and its exporter."""

    url: str
    exporter: Exporter


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """The real command with an exporter of three clusters, and rollups of two."""
    folder = tmp_path_factory.mktemp("page")
    root = folder / "rollups"
    for name in ("shop", "hostile"):
        rollup_files.write_story(root, minutes=60, cluster=name)
    minute = rollup_files.this_minute() - timedelta(minutes=5)
    rollup_files.write(root, QUEUES_1M, [rollup_files.queue_row(minute, HOSTILE, 10**6)], "hostile")
    clusters = (answers.sick("shop"), answers.healthy("billing"), answers.hostile("hostile"))
    with answers.serving(*clusters) as exporter, serving_page(exporter.url, root, folder) as served:
        yield Watched(served.url, exporter)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests of this file."""
    with chromium() as started:
        yield started


@pytest.fixture
def asked() -> list[str]:
    """All URLs that the page requested."""
    return []


@pytest.fixture
def complaints() -> list[str]:
    """Errors of the page: exceptions, and what the browser printed as errors."""
    return []


@pytest.fixture
def page(request: pytest.FixtureRequest, browser: Browser, asked: list[str], complaints: list[str]) -> Iterator[Page]:
    """An empty page of desktop width, or of phone width if a test asks for it."""
    width, height = WINDOWS[getattr(request, "param", "desk")]
    context = browser.new_context(viewport={"width": width, "height": height})
    context.set_default_timeout(60_000)
    opened = context.new_page()
    opened.on("request", lambda sent: asked.append(sent.url))
    opened.on("websocket", lambda sent: asked.append(sent.url))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    yield opened
    context.close()


def in_window(page: Page) -> bool:
    """Whether nothing is wider than the window."""
    return bool(page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth"))


@pytest.mark.parametrize("page", SIZES, indirect=True)
def test_the_first_screen_answers_the_four_questions(watched: Watched, page: Page, tmp_path: Path) -> None:
    """Without scrolling: severity, subject, start time, on a desk the first step; nothing is cut off or too wide."""
    page.goto(f"{watched.url}/?cluster=shop")
    settle(page)
    page.screenshot(path=str(tmp_path / "first-screen.png"))
    width, height = page.viewport_size["width"], page.viewport_size["height"]

    texts = ["1 critical, 1 warning", "queue 'orders.invoices' in vhost '/'", " min ago"]
    for text in [*texts, "List the consumers of the queue"][: 4 if width > 640 else 3]:
        box = page.get_by_text(text).first.bounding_box()
        assert box["y"] + box["height"] < height, text
    assert page.get_by_text("rabbitmqctl list_consumers -p / | grep -F -- orders.invoices").is_visible()
    assert [] == page.evaluate(CUT_CELLS)
    assert in_window(page)


def test_a_finding_has_links_and_a_bundle_can_be_downloaded(watched: Watched, page: Page) -> None:
    """Links are anchors with the cluster in their address; the bundle is the exporter's file."""
    watched.exporter.raw = {"/api/v1/bundle": (200, b"packed")}
    try:
        page.goto(f"{watched.url}/?cluster=shop")
        page.get_by_role("button", name="Create a diagnosis bundle").click()
        with page.expect_download() as taking:
            page.get_by_role("button", name="Save cluster.ackscope").click()
        saved = Path(taking.value.path()).read_bytes()
    finally:
        watched.exporter.raw = {}
    card = page.locator(".st-key-finding-details")
    links = card.locator("[data-testid=stPageLink] a").evaluate_all("them => them.map((it) => it.getAttribute('href'))")
    asked = {url.path: parse_qs(url.query) for url in map(urlsplit, links)}
    beginning = asked["history"].pop("at")[0]

    assert b"packed" == saved
    assert {
        "queues": {"cluster": ["shop"], "queue": ["orders.invoices"], "vhost": ["/"]},
        "consumers": {"cluster": ["shop"], "find": ["invoice-worker"]},
        "history": {"cluster": ["shop"], "around": ["1h"]},
    } == asked
    assert answers.ago(minutes=60) < f"{beginning}:00Z" < answers.ago(minutes=28)
    assert "from 20 to 12,418" in card.locator(".curves img").nth(1).get_attribute("alt")


@pytest.mark.parametrize("clipboard", ["with", "without"])
def test_a_command_can_be_copied(watched: Watched, page: Page, clipboard: str) -> None:
    """Letter by letter; without TLS a browser has no clipboard for other machines' pages, and it works all the same."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    if clipboard == "without":
        page.add_init_script("navigator.clipboard.writeText = undefined")
    page.goto(f"{watched.url}/?cluster=shop")
    settle(page)
    first = page.locator(".st-key-finding-details .command").first
    first.get_by_role("button", name="Copy").click()
    first.get_by_role("button", name="Copied").wait_for()

    expect(first.get_by_role("button", name="Copy", exact=True)).to_be_focused()
    assert first.locator("code").text_content() == page.evaluate("navigator.clipboard.readText()")
    assert "rabbitmqctl list_consumers -p / | grep -F -- orders.invoices" == first.locator("code").text_content()


def test_a_runbook_opens_and_stays_open(watched: Watched, page: Page) -> None:
    """The whole runbook in a dialog, also after the page has refreshed itself."""
    page.goto(f"{watched.url}/?cluster=shop")
    settle(page)
    page.get_by_role("button", name="Runbook").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("heading", name="What else looks like it").wait_for()
    page.wait_for_timeout(9_000)

    expect(dialog.get_by_role("heading", name="What else looks like it")).to_be_visible()
    assert 0 == dialog.locator("a[href$='.md']").count()


def test_the_page_makes_no_external_requests(
    watched: Watched, page: Page, asked: list[str], complaints: list[str]
) -> None:
    """All requests stay on this host, and the browser logs no error."""
    page.goto(f"{watched.url}/?cluster=shop")
    settle(page)
    host = watched.url.removeprefix("http")

    assert [] == [url for url in asked if not url.startswith((f"http{host}", f"ws{host}", "data:", "blob:"))]
    assert any(url.startswith("ws") for url in asked)
    assert [] == complaints


@pytest.mark.parametrize("page", SIZES, indirect=True)
def test_hostile_names_are_shown_and_do_nothing(watched: Watched, page: Page, complaints: list[str]) -> None:
    """Scripts do not run, tags are not rendered, codes are not replaced: every name is shown literally."""
    page.goto(f"{watched.url}/?cluster=hostile")
    settle(page)
    for summary in page.locator("[data-testid=stExpander] summary").all():
        summary.click()
    page.get_by_text("Because").wait_for()
    settle(page)
    shown = page.inner_text("[data-testid=stMain]")

    assert page.evaluate("() => window.hurt === undefined")
    assert 0 == page.locator("img[src=x], [href^=javascript], .katex, [data-testid=stMain] script").count()
    assert 0 == page.locator(".js-plotly-plot a").count()
    assert shown.count("<script>") - CUT_LABELS == shown.count(visible(HOSTILE))
    assert shown.count(visible(HOSTILE)) > 25
    assert "\u202e" not in shown
    assert [] == complaints
    assert in_window(page)


def test_the_range_is_in_the_address(watched: Watched, page: Page) -> None:
    """Selected with the mouse, added to the other parameters."""
    page.goto(f"{watched.url}/?cluster=shop")
    settle(page)
    opener = page.locator(".st-key-range-choice button")
    still(opener)
    opener.click()
    page.get_by_role("option", name="Last 15 minutes").click()
    page.wait_for_url("**range=15m**")

    assert "cluster=shop" in page.url


def test_the_page_updates_without_a_reload(watched: Watched, page: Page) -> None:
    """A new finding, and an exporter that stops and comes back."""
    before = watched.exporter.clusters
    page.goto(f"{watched.url}/?cluster=billing")
    page.get_by_role("heading", name="Nothing wrong found").wait_for()
    page.evaluate("() => { window.same = true }")
    watched.exporter.clusters = (before[0], answers.sick("billing"), before[2])
    try:
        page.get_by_role("heading", name="1 critical, 1 warning").wait_for()
        watched.exporter.raw = {"/api/v1/findings": (503, b"")}
        page.get_by_text("Exporter unreachable").first.wait_for()
    finally:
        watched.exporter.raw, watched.exporter.clusters = {}, before
    page.get_by_role("heading", name="Nothing wrong found").wait_for()

    # The light of the frame has a refresh of its own.
    expect(page.get_by_text("Exporter unreachable")).to_have_count(0, timeout=60_000)
    assert page.evaluate("() => window.same === true")


def rows(page: Page) -> Locator:
    """The lines of the list of findings. A button with a tooltip is in the page twice, for mouse and for touch."""
    return page.locator(".st-key-finding-rows button:visible")


def listed(number: int) -> list[FindingReport]:
    """As many findings, with names that do not fit in a line."""
    names = (f"shop.eu-west.checkout.orders.v2.{index:03d}" for index in range(number))
    return [answers.stuck(name, "marketing" if len(name) % 2 else "/") for name in names]


@pytest.fixture
def many(watched: Watched) -> Iterator[Exporter]:
    """The exporter, with twelve findings in the cluster `billing`."""
    before = watched.exporter.clusters
    found = answers.healthy("billing", findings=listed(12), series=answers.signs())
    watched.exporter.clusters = (before[0], found, before[2])
    yield watched.exporter
    watched.exporter.clusters, watched.exporter.raw = before, {}


@pytest.mark.parametrize("page", ["large"], indirect=True)
def test_twelve_findings_and_the_whole_of_one_are_on_the_first_screen(
    watched: Watched, many: Exporter, page: Page
) -> None:
    """Each is one line, nothing is cut off, and the curves are drawn."""
    page.goto(f"{watched.url}/?cluster=billing")
    settle(page)
    rows(page).nth(11).wait_for()
    page.locator(".curves img").first.wait_for()
    boxes = [row.bounding_box() for row in rows(page).all()]
    whole = page.locator(".st-key-finding-details").bounding_box()
    drawn = page.locator(".curves img").evaluate_all("them => them.map((it) => it.naturalWidth)")

    assert 12 == len(boxes)
    assert max(box["y"] + box["height"] for box in boxes) <= 900
    assert {1} == {round(box["height"] / boxes[0]["height"]) for box in boxes}
    assert whole["y"] + whole["height"] <= 900
    assert len(drawn) in {2, 3}
    assert all(drawn)


def test_a_choice_and_what_is_typed_survive_the_refresh(watched: Watched, many: Exporter, page: Page) -> None:
    """The choice is in the address; an open form stays open and filled, and is sent with all that was typed.

    Meanwhile a row goes and one comes, the curves disappear, and two lines appear above the form.
    """
    page.goto(f"{watched.url}/?cluster=billing")
    settle(page)
    rows(page).filter(has_text="v2.007").click()
    page.wait_for_url("**finding=stuck-consumer-**")
    details = page.locator(".st-key-finding-details")
    details.get_by_text("v2.007").first.wait_for()
    details.locator(".curves img").first.wait_for()
    details.get_by_role("button", name="Mute").click()
    page.get_by_label("Reason").fill("planned migration")
    page.get_by_label("Your name").fill("ann")
    later = listed(13)[1:]
    later[6] = replace(later[6], triage=Triage(owner="bob"))
    many.clusters = (many.clusters[0], answers.healthy("billing", findings=later), many.clusters[2])
    many.raw = {"/api/v1/probes": (503, b"")}
    page.get_by_text("v2.012").first.wait_for()
    page.get_by_text("Probe results unavailable").wait_for()
    details.get_by_text("Owner: bob.").wait_for()
    expect(details.locator(".curves img")).to_have_count(0, timeout=60_000)

    assert "planned migration" == page.get_by_label("Reason").input_value()
    assert details.get_by_text("v2.007").first.is_visible()

    many.raw = {"/api/v1/findings": (503, b"")}
    page.get_by_text("Exporter unreachable").first.wait_for()
    page.wait_for_timeout(6_000)

    assert "planned migration" == page.get_by_label("Reason").input_value()

    many.raw = {"/api/v1/triage": (500, b"disk full\n")}
    page.get_by_test_id("stFormSubmitButton").get_by_role("button", name="Mute").click()
    details.get_by_text("Not saved: disk full").wait_for()
    sent = many.posted[-1]

    assert ("billing", "stuck-consumer", 3600) == (sent["cluster"], sent["rule"], sent["mute_seconds"])
    assert ("planned migration", "ann") == (sent["reason"], sent["by"])
    assert sent["subject"]["name"].endswith("v2.007")
