"""A scripted reader, who was woken a minute ago: reads the first screen from its top, and clicks what tells more.

It knows what to look for, a rule and what it is about, and no address but that of the page.
"""

import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Error, Page

from dashboard.format.escape import shortened, visible
from dashboard.views.now.finding_list import LONGEST_SUBJECT
from tests.e2e.trouble import Held

PATIENCE = 90.0
"""Seconds after which the reader gives up, on however slow a machine."""

_SEEN = "(found) => found.filter((each) => each.checkVisibility()).map((each) => each.innerText.trim())"
_COMES = 60.0
_LATEST = 40
"""Reports of a finding that the page may show: of the last 12 s and more."""

_ROWS = ".st-key-finding-rows button:visible"
_DETAILS = ".st-key-finding-details"
_MORE = re.compile(r"\+\d")
"""A line says so if it has consequences, which are listed while it is chosen."""


@dataclass(slots=True)
class Reading:
    """How the reader fared with one fault.

    Attributes:
        seconds: from opening the page to having read the next step.
        place: the line of the finding, from the top; 0 where it was in none.
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
        held: the fault, as its injector reported it.
        ask: its finding, as the API tells it now: what must be read at the end.
    """
    reading, began = Reading(held.spec.name), time.monotonic()
    page.set_default_timeout(PATIENCE * 1000)
    try:
        page.goto(url)
        subject = ask()["subject"]
        rule, who = _word(held.spec.rule), {shortened(each, LONGEST_SUBJECT) for each in _names(subject)}
        if _find(page, reading, rule, who, began + PATIENCE):
            _read_on(page, reading, rule, ask)
    except Error as error:
        reading.missing.append(f"gave up: {error.message.splitlines()[0]}")
    reading.seconds = time.monotonic() - began
    return reading


def _word(rule: str) -> re.Pattern[str]:
    """The name of a rule by itself: names of queues hold such words, too."""
    return re.compile(rf"(?<![\w.'-]){re.escape(rule)}(?![\w-])")


def _names(subject: Mapping[str, Any]) -> tuple[str, str]:
    """The name of a subject as the list has it: with its virtual host where there are several."""
    return visible(subject["name"]), visible(f"{subject['name']} ({subject['vhost']})")


def _find(page: Page, reading: Reading, rule: re.Pattern[str], who: Collection[str], until: float) -> bool:
    """Choose the line that tells of it; a consequence is listed once its cause is chosen."""
    opened: set[str] = set()
    while time.monotonic() < until:
        lines = page.locator(_ROWS).all_inner_texts()
        for place, text in enumerate(lines, start=1):
            name = next((each for each in who if each in text), None)
            if rule.search(text) and name is not None:
                reading.place = place
                _choose(page, reading, rule, name)
                return True
        cause = next((text for text in lines if _MORE.search(text) and text not in opened), None)
        if cause is not None and reading.clicks < 1:
            opened.add(cause)
            page.locator(_ROWS).nth(lines.index(cause)).click()
            reading.clicks += 1
        # The page still comes.
        page.wait_for_timeout(300)
    reading.missing.append("no line of the first screen tells of it")
    return False


def _choose(page: Page, reading: Reading, rule: re.Pattern[str], name: str) -> None:
    """Click a line, unless it is the first one, which is shown in full already.

    Lines change their places while findings come and go, and a page that is drawn again may lose a click: then the
    person clicks once more, which is no other step.
    """
    line, details = page.locator(_ROWS).filter(has_text=rule).filter(has_text=name).first, page.locator(_DETAILS)
    if reading.place == 1 and rule.search(details.inner_text()):
        return
    reading.clicks += 1
    for _ in range(3):
        line.click()
        with suppress(Error):
            details.filter(has_text=rule).wait_for(timeout=15_000)
            return


def _read_on(page: Page, reading: Reading, rule: re.Pattern[str], ask: Callable[[], Mapping[str, Any]]) -> None:
    """What the details say: why, what shows it, what to do; they come piece by piece."""
    until, lacking = time.monotonic() + _COMES, ["all of it"]
    details = page.locator(_DETAILS)
    reported: list[Mapping[str, Any]] = []
    while lacking and time.monotonic() < until:
        # Its figures change with each poll, and the page is a refresh behind the API. So the page must show one of the
        # latest reports in full.
        reported = [*reported, ask()][-_LATEST:]
        text = details.inner_text()
        # What is drawn, a picture's words tell.
        drawn = details.locator("[aria-label]").evaluate_all("(found) => found.map((each) => each.ariaLabel).join(' ')")
        reading.commands = details.locator("pre code").evaluate_all(_SEEN)
        lacking = ["another finding"]
        if rule.search(text):
            all_text = f"{text} {drawn}"
            lacking = min((_lacking(it, text, all_text, reading.commands) for it in reported), key=len)
        if lacking:
            page.wait_for_timeout(300)
    reading.missing += lacking


def _lacking(reported: Mapping[str, Any], text: str, all_text: str, commands: Sequence[str]) -> list[str]:
    """What of a finding cannot be read."""
    steps = reported["steps"]
    lacking = [it["command"] for it in steps if it["command"] and visible(it["command"]) not in commands]
    lacking += [it["text"] for it in steps if visible(it["text"]) not in text]
    lacking += [reported["cause"]] * (visible(reported["cause"]) not in text)
    lacking += [it["what"] for it in reported["evidence"] if visible(it["what"]) not in all_text]
    return lacking
