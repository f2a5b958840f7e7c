"""A real Chromium: pages opened from cold, when something is on the screen, and what came over the wire for it."""

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
"""Options with which it calls nobody by itself, and runs where there is no screen."""
_WITHIN = 180_000.0
"""Milliseconds."""

HEADING = "[...document.querySelectorAll('[data-testid=stHeading]')].some((it) => it.innerText.trim())"
"""Script: a heading with words is there."""

_WATCH = """(() => {
  const look = () => {
    let there = false;
    try { there = Boolean(document.body && (%s)); } catch (error) { there = false; }
    if (there && window.__seen === undefined) {
      window.__seen = 0;
      requestAnimationFrame(() => { window.__seen = performance.now(); });
    }
  };
  new MutationObserver(look).observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
})()"""


@dataclass(slots=True)
class Opened:
    """One page, from the start of its navigation.

    Attributes:
        seconds: until it was painted; 0 before.
        received: bytes that the browser got for it, as they came, websockets too.
        requests: how many.
    """

    seconds: float = 0.0
    received: int = 0
    requests: int = 0


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser without a window, which calls nobody of itself.

    Raises:
        MissingPart: there is none, or nothing to drive it.
    """
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415  a part for developers
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
    """Open an address with nothing cached, and wait until it is on the screen.

    Args:
        browser: of `chromium`.
        url: the address.
        there: script that is true once what is waited for is in the document.
        state: cookies and stored values that the browser has; nothing where it is None.

    Raises:
        BrokerError: it did not come.
    """
    context = browser.new_context(viewport={"width": 1280, "height": 900}, storage_state=state)
    try:
        page = context.new_page()
        found = Opened()
        _count(context.new_cdp_session(page), found)
        page.add_init_script(_WATCH % there)
        page.goto(url, wait_until="commit")
        awaited(page, "() => window.__seen > 0", url)
        found.seconds = page.evaluate("() => window.__seen") / 1000
        yield page, found
    finally:
        context.close()


def awaited(page: Any, script: str, what: str) -> None:
    """Wait until a script says so.

    Raises:
        BrokerError: it did not, in time.
    """
    from playwright.sync_api import TimeoutError as TooLong  # noqa: PLC0415  as above

    try:
        page.wait_for_function(script, timeout=_WITHIN)
    except TooLong:
        raise BrokerError(f"{what}: not seen in the browser within {_WITHIN / 1000:g} s") from None


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
