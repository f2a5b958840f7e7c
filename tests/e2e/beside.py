"""RabbitMQ's management page beside the dashboard: the same jobs of an engineer on call, on the same broker in trouble.

`python -m tests.e2e.pictures --beside FOLDER` takes them; what was seen there is in `docs/beside-rabbitmq.md`.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import requests
from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import Browser, BrowserContext, Locator, Page

from tests.e2e.visits import quiet

SIZES = {"wide": (1440, 900), "phone": (390, 844)}
_STUCK = "fault.stuck-consumer"
_CLIENT = "fault-stuck-consumer"
_GAP, _LABEL, _WIDEST = 16, 44, 1900
_PATIENCE_MS = 60_000.0
_CHARTS_MS, _REFRESH_MS = 3000.0, 6000.0
_MEASURED = """(chosen) => {
  const whole = document.scrollingElement, box = document.querySelector(chosen) || whole;
  return [box.scrollHeight / innerHeight, Math.max(box.scrollWidth, whole.scrollWidth) - innerWidth];
}"""
"""How many windows a page is long, and how many pixels it is wider than one."""


class Side(NamedTuple):
    """How one of both pages answers: its address below the root, the clicks to it, and what is clicked once there.

    Attributes:
        clicks: from the first screen of that page, until the answer is in the picture; typing a word counts as one.
    """

    address: str
    clicks: int
    drive: Callable[[Page], None] = lambda page: None


class Job(NamedTuple):
    """One job, done in both pages."""

    name: str
    question: str
    theirs: Side
    ours: Side


def _press(found: Locator) -> None:
    """A click without scrolling there: on a phone the header of the management page lies over what is scrolled to."""
    found.first.evaluate("(it) => it.click()")


def _sorted_by(column: str) -> Callable[[Page], None]:
    """The most first: the first click on a heading sorts the least first."""

    def drive(page: Page) -> None:
        for _ in range(2):
            _press(page.locator(f"a.sort[sort='{column}']"))
            page.wait_for_timeout(_CHARTS_MS)

    return drive


def _unfolded(section: str) -> Callable[[Page], None]:
    def drive(page: Page) -> None:
        _press(page.locator("h2", has_text=re.compile(f"^{section}")))

    return drive


def _last_hour(page: Page) -> None:
    """Their charts show the last minute until another range is chosen."""
    _press(page.locator(".popup-options-link[for='lengths-over']"))
    _press(page.locator("input[type=radio][value^='3600|']"))
    _press(page.get_by_text("Close", exact=True))
    page.wait_for_timeout(_REFRESH_MS)


def jobs(management: str) -> tuple[Job, ...]:
    """All jobs; `management` is the URL of the broker's API with its user, to find the connection of a client."""
    listed = requests.get(f"{management}/api/connections", timeout=30).json()
    names = (it["name"] for it in listed if it.get("client_properties", {}).get("connection_name") == _CLIENT)
    connection = quote(next(names, listed[0]["name"]), safe="")
    return (
        Job("wrong", "Is something wrong, what, since when?", Side("", 0), Side("", 0)),
        Job(
            "find",
            "Which of many queues is sick?",
            Side("queues", 3, _sorted_by("messages_ready")),
            Side("queues", 1),
        ),
        Job(
            "queue",
            "One queue: who publishes, who consumes, what is stuck?",
            Side(f"queues/%2F/{_STUCK}", 3, _unfolded("Consumers")),
            Side(f"queues?queue={_STUCK}&vhost=/", 2),
        ),
        Job(
            "unacked",
            "Who holds unacknowledged messages?",
            Side("channels", 3, _sorted_by("messages_unacknowledged")),
            Side("consumers", 1),
        ),
        Job(
            "connection",
            "A connection: who is it, what does it do?",
            Side(f"connections/{connection}", 2),
            Side(f"consumers?find={_CLIENT}", 2),
        ),
        Job(
            "flow",
            "Where do messages go, and where are they dropped?",
            Side("exchanges", 1),
            Side("topology?vhost=/", 1),
        ),
        Job("nodes", "How close is a node to its limits?", Side("nodes/lab1%40localhost", 1), Side("nodes", 1)),
        Job("changed", "What changed in the last minutes?", Side("", 2, _last_hour), Side("history?around=15m", 1)),
    )


def take(browser: Browser, page_url: str, management: str, folder: Path, names: Sequence[str] = ()) -> Iterator[str]:
    """Take both pages of each job in both sizes, and join them; yields a line about each."""
    address = urlsplit(management)
    base = f"http://{address.hostname}:{address.port}"
    context = browser.new_context(color_scheme="light")
    context.set_default_timeout(_PATIENCE_MS)
    _sign_in(context, base, address.username or "", address.password or "")
    for job in jobs(management):
        if names and job.name not in names:
            continue
        for size in SIZES:
            start = folder / f"{job.name}-{size}"
            theirs, ours = start.with_name(f"{start.name}-rabbitmq.png"), start.with_name(f"{start.name}-ackscope.png")
            said = (
                _one(context, f"{base}/#/", job.theirs, size, theirs, mine=False),
                _one(context, f"{page_url}/", job.ours, size, ours, mine=True),
            )
            joined((theirs, ours), ("RabbitMQ", "ackscope"), folder / f"beside-{start.name}.webp")
            yield f"{job.question} {size}: RabbitMQ {said[0]}; ackscope {said[1]}"
    context.close()


def _one(context: BrowserContext, root: str, side: Side, size: str, path: Path, *, mine: bool) -> str:
    width, height = SIZES[size]
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": height})
    page.goto(f"{root}{side.address}")
    _drawn(page, mine=mine)
    side.drive(page)
    _drawn(page, mine=mine)
    page.screenshot(path=str(path))
    screens, beyond = page.evaluate(_MEASURED, "[data-testid=stMain]" if mine else "body")
    page.close()
    return f"{side.clicks} clicks, {screens:.1f} screens, {beyond:.0f} px beyond the window"


def _sign_in(context: BrowserContext, base: str, user: str, password: str) -> None:
    page = context.new_page()
    page.goto(base)
    page.fill("input[name=username]", user)
    page.fill("input[name=password]", password)
    page.click("input[type=submit]")
    page.wait_for_selector("#main")
    page.close()


def _drawn(page: Page, *, mine: bool) -> None:
    """Charts and tables come a moment after the words."""
    if mine:
        quiet(page)
    else:
        page.wait_for_function("() => document.querySelector('#main h1, #main h2')?.innerText")
    page.wait_for_timeout(_CHARTS_MS)
    if mine:
        quiet(page)


def joined(files: Sequence[Path], labels: Sequence[str], path: Path) -> None:
    """Pictures side by side, each under its label, small enough for a repository."""
    pictures = [Image.open(it).convert("RGB") for it in files]
    width = sum(it.width for it in pictures) + _GAP * (len(pictures) - 1)
    sheet = Image.new("RGB", (width, pictures[0].height + _LABEL), "white")
    draw, left = ImageDraw.Draw(sheet), 0
    for picture, label in zip(pictures, labels, strict=True):
        draw.text((left + 8, 6), label, fill="black", font=ImageFont.load_default(28))
        sheet.paste(picture, (left, _LABEL))
        left += picture.width + _GAP
    sheet.thumbnail((_WIDEST, sheet.height))
    sheet.save(path, quality=50, method=6)
