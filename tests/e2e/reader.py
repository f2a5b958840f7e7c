"""A scripted reader, who was woken a minute ago: reads the first screen from its top, and clicks what tells more.

It knows what to look for, a rule and what it is about, and no address but that of the page.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Error, Locator, Page

from dashboard.format.escape import visible
from tests.e2e.trouble import Held

PATIENCE = 90.0
"""Seconds after which the reader gives up, on however slow a machine."""

_LINES = """() => {
  const part = "[class*='st-key-card-'], [data-testid=stExpander]";
  return [...document.querySelectorAll("[data-testid=stMain] :is(" + part + ")")]
    .filter((each) => !each.parentElement.closest(part))
    .map((each) => [each.matches("[data-testid=stExpander]"), each.innerText]);
}"""
"""What lies open, and the lines that can be opened, in the order of the page: whether it is such a line, its text."""

_SEEN = "(found) => found.filter((each) => each.checkVisibility()).map((each) => each.innerText.trim())"
_FOLDED = "(line) => line.matches('[data-testid=stExpander]') && !line.querySelector('details').open"
_COMES = 60.0

_CARD = "[class*='st-key-card-']"
_LINE = "[data-testid=stExpander]"


@dataclass(slots=True)
class Reading:
    """How the reader fared with one fault.

    Attributes:
        seconds: from opening the page to having read the next step.
        place: in which card or line, from the top, the finding was; 0 where it was in none.
        missing: what should have been there and was not.
        commands: of the next steps, as they can be copied.
    """

    fault: str
    clicks: int = 0
    seconds: float = 0.0
    place: int = 0
    missing: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)


def read(page: Page, url: str, held: Held, ask: Callable[[], Mapping[str, Any]]) -> Reading:
    """Open the first screen and go from there to the next step of one fault.

    Args:
        page: an empty one.
        url: the first screen.
        held: the fault, as its injector told of it.
        ask: its finding, as the API tells it now: what must be read at the end.
    """
    reading, began = Reading(held.spec.name), time.monotonic()
    page.set_default_timeout(PATIENCE * 1000)
    try:
        page.goto(url)
        marks = (_word(held.spec.rule), re.compile(re.escape(visible(ask()["subject"]["name"]))))
        opened = _find(page, reading, marks, began + PATIENCE)
        if opened is not None:
            _read_on(opened, reading, ask)
    except Error as error:
        reading.missing.append(f"gave up: {error.message.splitlines()[0]}")
    reading.seconds = time.monotonic() - began
    return reading


def _word(rule: str) -> re.Pattern[str]:
    """The name of a rule by itself: names of queues hold such words, too."""
    return re.compile(rf"(?<![\w.'-]){re.escape(rule)}(?![\w-])")


def _find(page: Page, reading: Reading, marks: Sequence[re.Pattern[str]], until: float) -> Locator | None:
    """The open card that tells of it, with one click where it is folded up."""
    while time.monotonic() < until:
        for place, (folded, text) in enumerate(page.evaluate(_LINES), start=1):
            if not all(mark.search(text) for mark in marks):
                continue
            reading.place = place
            found = page.locator(_LINE if folded else _CARD)
            for mark in marks:
                found = found.filter(has_text=mark)
            if folded:
                _open(found.first, reading)
            return found.first
        # The page still comes.
        page.wait_for_timeout(100)
    reading.missing.append("no card and no line of the first screen tells of it")
    return None


def _open(line: Locator, reading: Reading) -> None:
    line.locator("summary").first.click()
    reading.clicks += 1


def _read_on(card: Locator, reading: Reading, ask: Callable[[], Mapping[str, Any]]) -> None:
    """What a card says: why, what shows it, what to do; a card that was just opened comes piece by piece."""
    until, lacking = time.monotonic() + _COMES, ["all of it"]
    while lacking and time.monotonic() < until:
        text = card.inner_text()
        # What is drawn, a picture's words tell.
        drawn = card.locator("[aria-label]").evaluate_all("(found) => found.map((each) => each.ariaLabel).join(' ')")
        reading.commands = card.locator("pre code").evaluate_all(_SEEN)
        # Its words change as it goes on: those of now are what must be read.
        lacking = _lacking(ask(), text, f"{text} {drawn}", reading.commands)
        if lacking:
            card.page.wait_for_timeout(300)
            # One that was not told for a moment is folded when it is back: a person clicks again, and it counts.
            if card.evaluate(_FOLDED):
                _open(card, reading)
    reading.missing += lacking


def _lacking(reported: Mapping[str, Any], text: str, all_text: str, commands: Sequence[str]) -> list[str]:
    """What of a finding cannot be read."""
    steps = reported["steps"]
    lacking = [it["command"] for it in steps if it["command"] and visible(it["command"]) not in commands]
    lacking += [it["text"] for it in steps if visible(it["text"]) not in text]
    lacking += [it for it in (reported["cause"], reported["runbook"]) if visible(it) not in text]
    lacking += [it["what"] for it in reported["evidence"] if visible(it["what"]) not in all_text]
    return lacking
