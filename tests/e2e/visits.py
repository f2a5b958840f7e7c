"""What a person does on each page while things are wrong, and the sick object that the page must show."""

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass

from playwright.sync_api import Page, TimeoutError  # noqa: A004  the name of Playwright

from dashboard.pages import PAGES
from tests.dashboard import browser


@dataclass(frozen=True, slots=True)
class Visit:
    """One page.

    Attributes:
        title: of the page.
        drive: what is done after coming there by its name; what was chosen then stands in the address.
        shows: words that must be on the page afterwards, of the faults that are held.
        again: those of them that must be there as well where the same address is opened anew.
        when: what else is wrong then.
    """

    title: str
    drive: Callable[[Page], object]
    shows: tuple[str, ...]
    again: tuple[str, ...]
    when: str = ""

    @property
    def seen_as(self) -> str:
        """The name of what was seen."""
        return f"{self.title}, {self.when}" if self.when else self.title


_QUIET = 30.0
"""Seconds."""

_TEXT = """() => {
  const main = document.querySelector("[data-testid=stMain]");
  const cells = [...main.querySelectorAll("[data-testid=stDataFrame] td, .js-plotly-plot text, svg text")];
  return main.innerText + "\\n" + cells.map((each) => each.textContent).join("\\n");
}"""
"""All that can be read, that in tables and charts with it."""

_CHOSEN = """() => {
  const main = document.querySelector("[data-testid=stMain]");
  const seen = (each) => each.checkVisibility();
  const values = [...main.querySelectorAll("input[type=text], textarea")].filter(seen).map((each) => each.value);
  const boxes = [...main.querySelectorAll("[data-testid=stSelectbox]")].filter(seen).map((each) => each.innerText);
  const pressed = [...main.querySelectorAll("[aria-checked=true], [kind$=Active]")].map((each) => each.innerText);
  return [...values, ...boxes, ...pressed];
}"""
"""What stands in every box, and which buttons are pressed."""


def text_of(page: Page) -> str:
    """All that can be read on the page."""
    return str(page.evaluate(_TEXT))


def chosen_on(page: Page) -> list[str]:
    """What is chosen on the page."""
    return [str(each) for each in page.evaluate(_CHOSEN)]


def quiet(page: Page) -> None:
    """Wait until the run is over and nothing is stale; a slow machine's page that is never so is looked at as it is."""
    with contextlib.suppress(TimeoutError):
        browser.quiet(page, _QUIET)


def turn_to(page: Page, title: str) -> None:
    """Go to another page by its name.

    Until the address is the new one, the page before is still there, quiet, and has boxes of the same names.
    """
    page.get_by_test_id("stTopNavLink").filter(has_text=title).first.click()
    path = next(each.path for each in PAGES if each.title == title)
    page.wait_for_url(re.compile(rf"^https?://[^/]+/{re.escape(path)}(\?|$)"))
    quiet(page)


def _nothing(_page: Page) -> None:
    """All of it is on the page at once."""


def _find(words: str) -> Callable[[Page], None]:
    def drive(page: Page) -> None:
        box = page.get_by_label("Find")
        box.fill(words)
        box.press("Enter")
        page.wait_for_url(f"**find={words}**")

    return drive


def _pick(label: str, option: str, address: str) -> Callable[[Page], None]:
    def drive(page: Page) -> None:
        box = page.get_by_role("combobox", name=label)
        browser.still(box)
        box.click()
        # Of a long list only the first are there before something is typed.
        box.fill(option)
        page.get_by_role("option", name=re.compile(re.escape(option))).first.click()
        # What was chosen already changes no address.
        with contextlib.suppress(TimeoutError):
            page.wait_for_url(f"**{address}**", timeout=20_000)

    return drive


def _stream(page: Page) -> None:
    page.get_by_text("Current results of each probe stream").click()
    page.get_by_role("radio", name="quorum").or_(page.get_by_role("button", name="quorum")).first.click()
    page.wait_for_url("**stream=quorum**")


def _verdict(page: Page) -> None:
    page.get_by_role("radio", name="differs").or_(page.get_by_role("button", name="differs")).first.click()
    page.wait_for_url("**verdict=differs**")


def _run_probe(page: Page) -> None:
    _pick("Probe", "rtt:", "probe=rtt")(page)
    page.get_by_role("button", name="Run it now").click()
    page.get_by_text("Report of the rtt probe").wait_for()


VISITS = (
    Visit("Now", _nothing, ("stuck-consumer", "fault.stuck-consumer"), ("fault.stuck-consumer",)),
    Visit("Fleet", _nothing, ("shop", "critical"), ("shop",)),
    Visit("Confirms", _stream, ("missing", "Confirm latency of quorum"), ("Confirm latency of quorum",)),
    Visit("Queues", _find("fault.no-consumer"), ("fault.no-consumer", "1 match"), ("fault.no-consumer", "1 match")),
    Visit(
        "Consumers",
        _find("fault.stuck-consumer"),
        ("fault.stuck-consumer", "fault-stuck-consumer", "1 match"),
        ("fault.stuck-consumer", "1 match"),
    ),
    Visit(
        "Redeliveries",
        _nothing,
        ("fault.requeue-loop", "fault.dead-letter-cycle", "fault.dlx-missing.gone"),
        ("fault.requeue-loop",),
    ),
    Visit("Nodes", _nothing, ("lab1@localhost", "running"), ("lab1@localhost",)),
    Visit(
        "History",
        _pick("Before and after", "1 hour", "around=1h"),
        ("fault.stuck-consumer",),
        ("fault.stuck-consumer",),
    ),
    Visit("Timeline", _nothing, ("fault.stuck-consumer", "began"), ("fault.stuck-consumer",)),
    Visit(
        "Topology",
        # Not the first one of the list, which is chosen already.
        _pick("Queue", "fault.requeue-loop", "requeue-loop"),
        ("fault.requeue-loop",),
        ("requeue-loop",),
    ),
    Visit("Semantics", _verdict, ("differs",), ("differs",)),
    Visit("Probe", _run_probe, ("Report of the rtt probe",), ()),
)
"""Every page, in the order of the way through them."""

ALARM = Visit(
    "Nodes",
    _nothing,
    ("memory alarm on lab1@localhost", "ALARM"),
    ("memory alarm on lab1@localhost",),
    when="in an alarm",
)
"""While the node is out of memory."""
