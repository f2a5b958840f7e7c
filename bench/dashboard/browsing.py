"""Chromium: opens pages with a cold cache, and measures time to content and bytes received."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ackscope.errors import BrokerError, MissingPart

CHROMIUM = Path("/usr/bin/chromium")
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""Options of Chromium: no network calls of its own, no screen needed."""
_TIMEOUT_MS = 180_000.0

HEADING = "[...document.querySelectorAll('[data-testid=stHeading] h2')].some((it) => it.innerText.trim())"
"""JavaScript condition: a headline with text is on the page; the title of the page (h1) comes before it has data."""

_WATCH = """(() => {
  const look = () => {
    let there = false;
    try { there = Boolean(document.body && (%s)); } catch (error) { there = false; }
    if (there && window.__seen === undefined) {
      window.__seen = 0;
      // The message arrives after the frame has been laid out and painted.
      const painted = new MessageChannel();
      painted.port1.onmessage = () => { window.__seen = performance.now(); };
      requestAnimationFrame(() => painted.port2.postMessage(0));
    }
  };
  new MutationObserver(look).observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
})()"""


@dataclass(slots=True)
class Opened:
    """Measurements of one page, from the start of its navigation.

    Attributes:
        seconds: until it was painted; 0 before.
        received: bytes received over the network, including websockets.
        requests: number of requests.
    """

    seconds: float = 0.0
    received: int = 0
    requests: int = 0


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless browser.

    Raises:
        MissingPart: Chromium or playwright is missing.
    """
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415  a dependency of developers only
    except ImportError:
        raise MissingPart("playwright is missing: run make setup-test") from None
    if not CHROMIUM.exists():
        raise MissingPart(f"{CHROMIUM} is missing: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(QUIET))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Any, url: str, there: str, state: Any = None) -> Iterator[tuple[Any, Opened]]:
    """Open a URL with an empty cache, and wait until its content is painted.

    Args:
        browser: result of `chromium`.
        url: URL of the page.
        there: JavaScript condition that is true once the content is in the document.
        state: cookies and local storage of the browser; None: empty.

    Raises:
        BrokerError: the content did not appear in time.
    """
    context = browser.new_context(viewport={"width": 1280, "height": 900}, storage_state=state)
    try:
        page = context.new_page()
        found = Opened()
        _count(context.new_cdp_session(page), found)
        page.add_init_script(_WATCH % there)
        page.goto(url, wait_until="commit")
        wait_until(page, "() => window.__seen > 0", url)
        found.seconds = page.evaluate("() => window.__seen") / 1000
        yield page, found
    finally:
        context.close()


def wait_until(page: Any, script: str, what: str) -> None:
    """Wait until a JavaScript condition is true.

    Raises:
        BrokerError: it was not true in time.
    """
    from playwright.sync_api import TimeoutError as TooLong  # noqa: PLC0415  as above

    try:
        page.wait_for_function(script, timeout=_TIMEOUT_MS)
    except TooLong:
        raise BrokerError(f"{what}: did not appear in the browser within {_TIMEOUT_MS / 1000:g} s") from None


def _count(session: Any, found: Opened) -> None:
    session.send("Network.enable")

    def finished(event: dict[str, Any]) -> None:
        found.received += int(event["encodedDataLength"])
        found.requests += 1

    def framed(event: dict[str, Any]) -> None:
        frame = event["response"]
        text = frame["payloadData"]
        found.received += len(text.encode()) if frame["opcode"] == 1 else len(base64.b64decode(text))

    session.on("Network.loadingFinished", finished)
    session.on("Network.webSocketFrameReceived", framed)
