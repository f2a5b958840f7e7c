"""A real browser for tests, and screenshots: `python -m tests.dashboard.browser URL FILE [WIDTH HEIGHT]`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, sync_playwright

from bench.dashboard.browsing import CHROMIUM, QUIET

_WAIT_SECONDS = 120.0
"""A page may take a minute where the browser shares its cores with three other files of tests."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Chromium without network calls of its own; if it is missing, the test fails and says what to do."""
    if not CHROMIUM.exists():
        pytest.fail(f"{CHROMIUM} is missing: run make setup-test", pytrace=False)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(QUIET))
        try:
            yield browser
        finally:
            browser.close()


def settle(page: Page, seconds: float = _WAIT_SECONDS) -> None:
    """Wait until the run of the page has finished and all charts are drawn."""
    page.wait_for_function(
        """() => {
          const all = (what) => document.querySelectorAll(what);
          const app = document.querySelector('[data-testid=stApp]');
          return app && app.dataset.testScriptState === 'notRunning'
            && all('[data-testid=stHeading]').length > 0
            && all('[data-stale=true], [data-testid=stSkeleton], [data-testid=stAppSkeleton]').length === 0
            && [...all('[data-testid=stPlotlyChart]')].every((chart) => chart.querySelector('.xtick, .ytick'));
        }""",
        timeout=seconds * 1000,
    )


def quiet(page: Page, seconds: float = _WAIT_SECONDS) -> None:
    """Wait until the run of the page has finished and nothing is stale."""
    page.wait_for_function(
        """() => {
          const app = document.querySelector('[data-testid=stApp]');
          return app && app.dataset.testScriptState === 'notRunning'
            && document.querySelectorAll('[data-testid=stMain] p, [data-testid=stMain] h3').length > 0
            && document.querySelectorAll('[data-stale=true], [data-testid=stSkeleton]').length === 0;
        }""",
        timeout=seconds * 1000,
    )


def still(box: Locator) -> None:
    """Scroll to a box and wait two frames: a list that opens while the page scrolls closes again."""
    box.scroll_into_view_if_needed()
    box.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def take_screenshot(
    url: str, path: Path, width: int = 1280, height: int = 900, *, dark: bool = False, whole: bool = False
) -> None:
    """Save a screenshot of a settled page: the first screen, or the `whole` page."""
    with chromium() as browser:
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light")
        page.goto(url)
        settle(page)
        if whole:
            # The page scrolls inside the window: a taller window shows it all.
            length = page.evaluate("() => document.querySelector('[data-testid=stMain]').scrollHeight")
            page.set_viewport_size({"width": width, "height": int(length) + 40})
            settle(page)
        page.screenshot(path=str(path))


if __name__ == "__main__":
    take_screenshot(sys.argv[1], Path(sys.argv[2]), *(int(text) for text in sys.argv[3:5]))
