"""Twelve faults on one real broker, seen through the page: what a reader reaches, and what each page shows meanwhile.

The stages are slow and build on each other, so that they are lived once; the tests look at what was seen.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Error, Page, Request, WebSocket

from tests.e2e import reader, visits
from tests.e2e.reader import PATIENCE, Reading
from tests.e2e.rolled import roll_up
from tests.e2e.trouble import CLUSTER, Reported, Trouble
from tests.e2e.visits import VISITS, Visit, chosen_on, quiet, text_of

TOGETHER = (
    "stuck-consumer",
    "requeue-loop",
    "pub-nacked-overflow",
    "pub-tx-channel",
    "no-consumer",
    "dead-letter-cycle",
    "dlx-missing",
    "policy-not-applied",
    "channel-leak",
    "connection-limit-reached",
    "probe-message-lost",
)
"""Held at once: of consumers, publishers, queues, policies, connections, and one that only a client feels."""

AFTERWARDS = "memory-alarm"
"""It stops every publisher, and so disturbs the others."""

FAULTS = (*TOGETHER, AFTERWARDS)

_NAMED = 120.0
_WINDOW = {"width": 1280, "height": 900}
_OWN = ("data:", "blob:")


@dataclass(slots=True)
class Seen:
    """What was seen of one page.

    Attributes:
        missing: of the sick object, after what a person does there.
        lost: what the same address did not show again, opened anew.
        serious: what the accessibility engine calls serious or critical, by rule.
    """

    address: str = ""
    missing: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    serious: dict[str, list[str]] = field(default_factory=dict)


@dataclass(slots=True)
class Drama:
    """All that was seen.

    Attributes:
        unnamed: faults that no finding named in time.
        pages: by title.
        asked: every address that a browser asked for.
        strangers: those of them outside of the page's own.
        payloads: how many answers and frames were looked through.
        leaks: which of them held a secret.
        complaints: what the browser printed as errors.
    """

    unnamed: list[str] = field(default_factory=list)
    readings: dict[str, Reading] = field(default_factory=dict)
    pages: dict[str, Seen] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    strangers: list[str] = field(default_factory=list)
    payloads: int = 0
    leaks: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


def live(trouble: Trouble, browser: Browser) -> Drama:
    """Hold the faults, read the first screen, go through the pages, then hold the last fault, and read again."""
    drama = Drama()
    context = _watched(browser, trouble, drama)
    trouble.hold(TOGETHER)
    reported = trouble.named(TOGETHER, _NAMED)
    _read(context, trouble, drama, TOGETHER, reported)
    trouble.verify()
    roll_up(trouble.landing, trouble.rollups, CLUSTER)
    fresh = _watched(browser, trouble, drama)
    page = context.new_page()
    page.goto(trouble.page)
    for visit in VISITS:
        if visit.title == "Semantics":
            trouble.wait_verified()
        drama.pages[visit.seen_as] = _see(page, fresh, visit)
    trouble.hold([AFTERWARDS])
    _read(context, trouble, drama, [AFTERWARDS], trouble.named([AFTERWARDS], _NAMED))
    drama.pages[visits.ALARM.seen_as] = _see(page, fresh, visits.ALARM)
    context.close()
    fresh.close()
    own = (trouble.page, trouble.page.replace("http", "ws", 1), *_OWN)
    drama.strangers = sorted(each for each in drama.asked if not each.startswith(own))
    return drama


def _read(
    context: BrowserContext, trouble: Trouble, drama: Drama, names: Sequence[str], reported: Mapping[str, Reported]
) -> None:
    drama.unnamed += [name for name in names if name not in reported]
    for name in reported:
        page = context.new_page()
        reading = reader.read(page, trouble.page, trouble.held[name], partial(trouble.reported_of, name))
        page.close()
        drama.readings[name] = reading
        sys.stderr.write(f"{name}: {reading.clicks} clicks, {reading.seconds:.1f} s, place {reading.place}\n")


def _see(page: Page, fresh: BrowserContext, visit: Visit) -> Seen:
    seen = Seen()
    try:
        visits.turn_to(page, visit.title)
        visit.drive(page)
        seen.missing = _lacking(page, visit.shows)
        seen.address, chosen = page.url, chosen_on(page)
        seen.serious = _serious(page)
        again = fresh.new_page()
        again.goto(seen.address)
        quiet(again)
        seen.lost = _lacking(again, visit.again)
        seen.lost += [it for it in chosen if it not in chosen_on(again)]
        again.close()
    except Error as error:
        seen.missing.append(error.message.splitlines()[0])
    sys.stderr.write(f"{visit.seen_as}: {seen.address} {[*seen.missing, *seen.lost, *seen.serious]}\n")
    return seen


def _lacking(page: Page, words: Sequence[str]) -> list[str]:
    """Which words do not come."""
    left = list(words)
    for _ in range(int(PATIENCE / 3)):
        text = text_of(page)
        left = [word for word in left if word not in text]
        if not left:
            break
        page.wait_for_timeout(1000)
    return left


def _serious(page: Page) -> dict[str, list[str]]:
    """What is serious for good: what is just being drawn anew is pale for a moment."""
    found: dict[str, list[str]] = {}
    # Nothing is pointed at.
    page.mouse.move(1, 1)
    for _ in range(3):
        quiet(page)
        report: dict[str, Any] = Axe().run(page).response
        found = {
            each["id"]: [node["html"][:160] for node in each["nodes"]][:3]
            for each in report["violations"]
            if each["impact"] in {"serious", "critical"}
        }
        if not found:
            break
        page.wait_for_timeout(1500)
    return found


def _watched(browser: Browser, trouble: Trouble, drama: Drama) -> BrowserContext:
    """A new reader's browser, of which every request, answer and frame is looked through."""
    context = browser.new_context(viewport=_WINDOW)
    context.set_default_timeout(PATIENCE * 1000)

    def look(where: str, payload: bytes | str) -> None:
        drama.payloads += 1
        data = payload.encode() if isinstance(payload, str) else payload
        drama.leaks += [where for secret in trouble.secrets if secret.encode() in data]

    def follow(socket: WebSocket) -> None:
        drama.asked.add(socket.url)
        socket.on("framereceived", lambda frame: look("a frame to the browser", frame))
        socket.on("framesent", lambda frame: look("a frame of the browser", frame))

    def watch(page: Page) -> None:
        page.on("websocket", follow)
        page.on("pageerror", lambda error: drama.complaints.append(str(error)))
        page.on("requestfinished", lambda sent: "/static/" in sent.url or look(sent.url, _answer(sent)))

    context.on("page", watch)
    context.on("request", lambda sent: drama.asked.add(sent.url))
    return context


def _answer(sent: Request) -> bytes:
    """The body of what came; nothing where there is none, as of a redirect, or where the page was closed since."""
    try:
        came = sent.response()
        return came.body() if came is not None else b""
    except Error:
        return b""
