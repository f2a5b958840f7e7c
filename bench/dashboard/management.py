"""Beside RabbitMQ's own page on one broker with many queues: how long until a sorted list is there, and its bytes."""

import argparse
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.bench import Bench, Document, tell
from bench.dashboard.browsing import Opened, awaited, chromium, opened
from bench.dashboard.scene import dashboard
from bench.exporter.busy import busy_broker
from bench.exporter.contenders import totals_seen
from bench.exporter.scraping import scrape
from bench.exporting import exporting, wait_for
from bench.tables import median, ms, table
from bench.usage import MB

OURS, THEIRS = "ackscope", "management"
_WITHIN = 300.0

_OUR_ROWS = "document.querySelectorAll('[data-testid=stDataFrame] table[role=grid] tbody tr').length > 1"
_THEIR_ROWS = "document.querySelectorAll('#queues-table-section table.list tbody tr').length > 1"
_THEIR_LOGIN = "document.querySelector('input[name=username]')"
_SORT = "a.sort[sort=messages_ready]"
_ARROW = f"() => (document.querySelector('{_SORT} .arrow') || {{innerText: ''}}).innerText.includes('%s')"
_UP, _DOWN = "\N{WHITE UP-POINTING TRIANGLE}", "\N{WHITE DOWN-POINTING TRIANGLE}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--broker", default="4.3", help="version (default 4.3)")
    parser.add_argument("--queues", type=int, default=10_000, help="how many (default 10000)")
    parser.add_argument("--times", type=int, default=7, help="openings of each, alternating (default 7)")


def measure(args: argparse.Namespace) -> Document:
    """Both on one broker, in one browser, each opened with nothing cached."""
    with (
        busy_broker(args.broker, args.queues, 200) as lab,
        exporting(lab.nodes[0], probes=False) as exporter,
        tempfile.TemporaryDirectory(prefix="ackscope-bench-") as folder,
        dashboard(exporter.url, Path(folder) / "rollups") as (_, url),
        chromium() as browser,
    ):
        wait_for(lambda: totals_seen(scrape(f"{exporter.url}/metrics").text) >= args.queues, "all queues", _WITHIN)
        base, state = _signed_in(browser, lab.nodes[0].management)
        took: dict[str, list[dict[str, float]]] = {OURS: [], THEIRS: []}
        for number in range(args.times + 1):
            tell(f"opened, {number} of {args.times}")
            ours, theirs = _ours(browser, url), _theirs(browser, base, state)
            if number:
                # The first is not counted: the server of ours compiles what it runs.
                took[OURS].append(ours)
                took[THEIRS].append(theirs)
        middle = {name: {key: median([it[key] for it in each]) for key in each[0]} for name, each in took.items()}
        return {"broker": lab.broker, "queues": args.queues, "times": args.times, "middle": middle, "all": took}


def _ours(browser: Any, url: str) -> dict[str, float]:
    """The page Queues at an address that says the order."""
    with opened(browser, f"{url}/queues?sort=ready", _OUR_ROWS) as (_, found):
        return _told(found, found.seconds, found.seconds)


def _theirs(browser: Any, base: str, state: Any) -> dict[str, float]:
    """The list of queues by its own address; its order takes two clicks, the first of which is upwards."""
    with opened(browser, f"{base}/#/queues", _THEIR_ROWS, state) as (page, found):
        for arrow in (_UP, _DOWN):
            page.click(_SORT)
            awaited(page, _ARROW % arrow, "the sorted list of the management page")
        return _told(found, found.seconds, page.evaluate("() => performance.now()") / 1000)


def _told(found: Opened, listed: float, ordered: float) -> dict[str, float]:
    return {"listed": listed, "sorted": ordered, "bytes": found.received, "requests": found.requests}


def _signed_in(browser: Any, management: str) -> tuple[str, Any]:
    """The address of the management page, and what a browser keeps of somebody who signed in."""
    address = urlsplit(management)
    base = f"http://{address.hostname}:{address.port}"
    with opened(browser, base, _THEIR_LOGIN) as (page, _):
        page.fill("input[name=username]", address.username or "")
        page.fill("input[name=password]", address.password or "")
        page.click("input[type=submit]")
        awaited(page, "() => document.querySelector('#main')", "the management page")
        return base, page.context.storage_state()


def lines(document: Document) -> list[str]:
    """The table, and how many times each is of the other."""
    middle = document["middle"]
    rows = [
        (name, ms(it["listed"]), ms(it["sorted"]), f"{it['bytes'] / MB:.2f}", f"{it['requests']:.0f}")
        for name, it in middle.items()
    ]
    ours, theirs = middle[OURS], middle[THEIRS]
    compared = (
        f"ackscope: {ours['sorted'] / theirs['sorted']:.2f} times as long until the list is sorted, "
        f"{ours['bytes'] / theirs['bytes']:.2f} times the bytes"
    )
    return [
        f"RabbitMQ {document['broker']}, {document['queues']} queues; the middle of {document['times']} openings",
        "",
        *table(("from cold, signed in", "list ms", "sorted ms", "MB", "requests"), rows),
        "",
        compared,
        "By messages ready, the most first. Ours is opened at the address that says so; the other takes two clicks.",
    ]


BENCH = Bench(
    name="management",
    room="dashboard",
    shows="a sorted list of 10,000 queues beside RabbitMQ's management page: time and bytes, from cold",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--times", "3"),
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
