"""The frame in a real browser: what only a browser shows."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page

from tests.dashboard import answers
from tests.dashboard.answers import HOSTILE
from tests.dashboard.broker_lists import shop
from tests.dashboard.browser import chromium, quiet
from tests.dashboard.command import serving_page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TIMES = {"from": ["2026-03-01T12:00"], "to": ["2026-03-01T13:30"]}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The dashboard of three clusters, one of them with hostile names."""
    folder = tmp_path_factory.mktemp("frame")
    clusters = (answers.sick("shop"), answers.healthy("billing"), answers.hostile(HOSTILE))
    with answers.serving(*clusters) as exporter, serving_page(exporter.url, folder / "none", folder) as served:
        exporter.lists = {"shop": shop(), HOSTILE: shop(HOSTILE, HOSTILE)}
        yield served.url


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests of this file."""
    with chromium() as started:
        yield started


@pytest.fixture
def page(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    """An empty page, of the width that a test asks for."""
    context = browser.new_context(viewport={"width": getattr(request, "param", 1440), "height": 900})
    context.set_default_timeout(60_000)
    yield context.new_page()
    context.close()


def parameters(page: Page) -> dict[str, list[str]]:
    """Query parameters of the address."""
    return parse_qs(urlsplit(page.url).query)


def test_range_and_cluster_survive_a_page_change_and_a_reload(url: str, page: Page) -> None:
    """Over the navigation, whose links have no parameters."""
    page.goto(f"{url}/confirms?cluster=billing&from={TIMES['from'][0]}&to={TIMES['to'][0]}")
    quiet(page)
    page.get_by_role("link", name="Queues").first.click()
    page.get_by_role("heading", name="Queues").wait_for()
    page.wait_for_url("**/queues?**to=**")
    changed = parameters(page)
    page.reload()
    page.get_by_role("button", name="Live").wait_for()

    assert {"cluster": ["billing"], **TIMES} == changed == parameters(page)
    page.get_by_role("button", name="Live").click()
    page.get_by_role("button", name="Live").wait_for(state="detached")
    assert {"cluster": ["billing"]} == parameters(page)


def test_a_range_is_entered_in_a_dialog(url: str, page: Page) -> None:
    """It begins with the range of the page."""
    page.goto(f"{url}/nodes?cluster=billing&from={TIMES['from'][0]}&to={TIMES['to'][0]}")
    quiet(page)
    page.locator(".st-key-range-choice").get_by_role("button").first.click()
    page.get_by_role("option", name="From … to …").click()
    page.get_by_test_id("stDialog").get_by_text("To (UTC)").wait_for()
    page.get_by_role("button", name="Show this range").click()
    page.get_by_test_id("stDialog").wait_for(state="detached")

    assert {"cluster": ["billing"], **TIMES} == parameters(page)


@pytest.mark.parametrize(
    ("text", "hit", "path", "query"),
    [
        ("orders.inv", "Queue orders.invoices", "/queues", {"queue": ["orders.invoices"], "vhost": ["/"]}),
        ("e-work", "Client invoice-worker", "/consumers", {"find": ["invoice-worker"]}),
        ("nacked", "Finding pub-nacked-overflow", "/", {}),
    ],
)
def test_ctrl_k_leads_to_queue_client_and_finding(
    url: str, page: Page, text: str, hit: str, path: str, query: dict[str, Any]
) -> None:
    """The keyboard is enough: the cursor is in the text, and Ctrl-Enter opens the first hit."""
    page.goto(f"{url}/nodes?cluster=shop")
    quiet(page)
    page.keyboard.press("Control+k")
    page.wait_for_function(
        "() => document.activeElement.closest('[data-testid=stDialog]') && document.activeElement.tagName === 'INPUT'"
    )
    page.keyboard.type(text)
    page.get_by_role("link", name=hit).wait_for()
    if page.get_by_test_id("stDialog").get_by_role("link").count() == 1:
        page.keyboard.press("Control+Enter")
    else:
        page.get_by_role("link", name=hit).click()
    page.wait_for_url(lambda address: urlsplit(address).path == path)
    page.get_by_test_id("stDialog").wait_for(state="detached")

    assert {"cluster": ["shop"], **query} == {name: it for name, it in parameters(page).items() if name != "finding"}


def test_a_row_of_the_fleet_opens_its_cluster(url: str, page: Page) -> None:
    """With a click anywhere in it."""
    page.goto(f"{url}/fleet")
    quiet(page)
    page.get_by_test_id("stDataFrame").click(position={"x": 400, "y": 36 + 23 * 2 + 12})
    page.wait_for_url("**/?cluster=billing")
