"""Comparison with RabbitMQ's management UI on a broker with many queues: time and bytes until a list is sorted."""

import argparse
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.bench import Bench, Document, progress
from bench.dashboard.browsing import Opened, chromium, opened, wait_until
from bench.dashboard.scene import dashboard
from bench.exporter.busy import busy_broker
from bench.exporter.contenders import totals_seen
from bench.exporter.scraping import scrape
from bench.exporting import exporting, wait_for
from bench.tables import median, ms, table
from bench.usage import MB

OURS, THEIRS = "ackscope", "management"
_WITHIN = 300.0

# The last row has a height once the browser has laid out all of them.
_OUR_ROWS = "document.querySelector('.st-key-queue-table tbody tr:nth-child(n+2):last-child').offsetHeight > 0"
_THEIR_ROWS = "document.querySelectorAll('#queues-table-section table.list tbody tr').length > 1"
_THEIR_LOGIN = "document.querySelector('input[name=username]')"
_SORT = "a.sort[sort=messages_ready]"
_ARROW = f"() => (document.querySelector('{_SORT} .arrow') || {{innerText: ''}}).innerText.includes('%s')"
_UP, _DOWN = "\N{WHITE UP-POINTING TRIANGLE}", "\N{WHITE DOWN-POINTING TRIANGLE}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark."""
    parser.add_argument("--broker", default="4.3", help="RabbitMQ version (default 4.3)")
    parser.add_argument("--queues", type=int, default=10_000, help="number of queues (default 10000)")
    parser.add_argument("--times", type=int, default=7, help="page loads of each UI, alternating (default 7)")


def measure(args: argparse.Namespace) -> Document:
    """Measure both UIs on one broker, in one browser, with an empty cache."""
    with (
        busy_broker(args.broker, args.queues, 200) as lab,
        exporting(lab.nodes[0], probes=False) as exporter,
        tempfile.TemporaryDirectory(prefix="ackscope-bench-") as folder,
        dashboard(exporter.url, Path(folder) / "rollups") as (_, url),
        chromium() as browser,
    ):
        wait_for(lambda: totals_seen(scrape(f"{exporter.url}/metrics").text) >= args.queues, "all queues", _WITHIN)
        base, state = _signed_in(browser, lab.nodes[0].management)
        loads: dict[str, list[dict[str, float]]] = {OURS: [], THEIRS: []}
        for number in range(args.times + 1):
            progress(f"page loads: {number} of {args.times}")
            ours, theirs = _ours(browser, url), _theirs(browser, base, state)
            if number:
                # The first load is not counted: our server compiles its code.
                loads[OURS].append(ours)
                loads[THEIRS].append(theirs)
        medians = {name: {key: median([it[key] for it in each]) for key in each[0]} for name, each in loads.items()}
        return {"broker": lab.broker, "queues": args.queues, "times": args.times, "middle": medians, "all": loads}


def _ours(browser: Any, url: str) -> dict[str, float]:
    """Measure the page Queues, with the sort order in its address."""
    with opened(browser, f"{url}/queues?sort=ready", _OUR_ROWS) as (_, found):
        return _measured(found, found.seconds, found.seconds)


def _theirs(browser: Any, base: str, state: Any) -> dict[str, float]:
    """Measure the list of queues of the management UI; sorting in descending order takes two clicks."""
    with opened(browser, f"{base}/#/queues", _THEIR_ROWS, state) as (page, found):
        for arrow in (_UP, _DOWN):
            page.click(_SORT)
            wait_until(page, _ARROW % arrow, "the sorted list of the management page")
        return _measured(found, found.seconds, page.evaluate("() => performance.now()") / 1000)


def _measured(found: Opened, listed: float, ordered: float) -> dict[str, float]:
    return {"listed": listed, "sorted": ordered, "bytes": found.received, "requests": found.requests}


def _signed_in(browser: Any, management: str) -> tuple[str, Any]:
    """Return the URL of the management UI, and the browser state after signing in."""
    address = urlsplit(management)
    base = f"http://{address.hostname}:{address.port}"
    with opened(browser, base, _THEIR_LOGIN) as (page, _):
        page.fill("input[name=username]", address.username or "")
        page.fill("input[name=password]", address.password or "")
        page.click("input[type=submit]")
        wait_until(page, "() => document.querySelector('#main')", "the management page")
        return base, page.context.storage_state()


def lines(document: Document) -> list[str]:
    """Return the table, and the ratios of both UIs."""
    medians = document["middle"]
    rows = [
        (name, ms(it["listed"]), ms(it["sorted"]), f"{it['bytes'] / MB:.2f}", f"{it['requests']:.0f}")
        for name, it in medians.items()
    ]
    ours, theirs = medians[OURS], medians[THEIRS]
    compared = (
        f"ackscope: {ours['sorted'] / theirs['sorted']:.2f} times as long until the list is sorted, "
        f"{ours['bytes'] / theirs['bytes']:.2f} times the bytes"
    )
    return [
        f"RabbitMQ {document['broker']}, {document['queues']} queues; medians of {document['times']} page loads",
        "",
        *table(("from cold, signed in", "list ms", "sorted ms", "MB", "requests"), rows),
        "",
        compared,
        "Sorted by ready messages, descending. Ours has the order in its address; the other needs two clicks.",
    ]


BENCH = Bench(
    name="management",
    room="dashboard",
    shows="a sorted list of 10,000 queues, compared with RabbitMQ's management UI: time and bytes, cold cache",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--times", "3"),
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
