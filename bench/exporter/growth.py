"""Cost of 1,000 to 100,000 queues, more than a real broker here can hold: a server replays a recording."""

import argparse
import itertools
import math
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.bench import Bench, Document, add_seconds, progress
from bench.exporter.contenders import details_seen, totals_seen
from bench.exporter.peers import oldest
from bench.exporter.recorded import record
from bench.exporter.replay import FULL_US, TOTALS_US, replaying
from bench.exporter.scraping import ScrapedPage, by_label, scrape
from bench.exporting import exporting_cluster, wait_for
from bench.tables import median, table
from bench.usage import MB, Stretch, usage

LINEAR = 2.0
"""Limit of the factor by which a cost may grow when the number of queues doubles."""

_WITHIN = 600.0
_LOOK = 5.0
_SCRAPED = 16.5
"""Seconds over which scrapes are timed: long enough that some are during a reading and some are not."""
_APART = 1.1
"""Seconds between these scrapes."""
_NOTE = (
    "totals, view: seconds from the start until the totals, and the statistics, of all queues were seen; read: "
    "of the totals once more, without the time that the server waited; gzip; CPU: seconds a minute; MB RSS: most."
)
_GROWING = ("reading", "scrape", "cpu", "peak")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--broker", default="4.3", help="version that is recorded (default 4.3)")
    parser.add_argument(
        "--queues", type=int, nargs="+", default=[1000, 3000, 10_000, 30_000, 100_000], help="sizes, ascending"
    )
    parser.add_argument(
        "--budget",
        type=float,
        default=1.0,
        help="share of a core of the broker that polling may take (default 1)",
    )
    add_seconds(parser, 60, "the measured part of each size")


def measure(args: argparse.Namespace) -> Document:
    """Measure each size with a new exporter."""
    recording, broker = record(args.broker)
    with tempfile.TemporaryDirectory(prefix="ackscope-bench-") as folder:
        path = Path(folder) / "recording.json"
        recording.save(path)
        sizes = [_size(path, queues, args) for queues in sorted(args.queues)]
    return {
        "broker": broker,
        "seconds": args.seconds,
        "budget": args.budget,
        "sizes": sizes,
        "doublings": [_doubling(small, large) for small, large in itertools.pairwise(sizes)],
    }


def _size(recording: Path, queues: int, args: argparse.Namespace) -> dict[str, Any]:
    progress(f"{queues} queues")
    with replaying(recording, queues) as base:
        root = {"poll": {"budget": args.budget}, "landing": {}}
        began = time.monotonic()
        with exporting_cluster({"management": {"url": base}}, root) as exporter:
            url, pid = f"{exporter.url}/metrics", exporter.process.pid

            def seen(count: Any) -> bool:
                time.sleep(0.5)
                return bool(count(scrape(url).text) >= queues)

            wait_for(lambda: seen(totals_seen), f"{queues} queues", _WITHIN)
            totals_after = time.monotonic() - began
            wait_for(lambda: seen(details_seen), f"the details of {queues} queues", _WITHIN)
            full_view = time.monotonic() - began
            spent, pages = Stretch({"exporter": pid}), list(_pages(url, args.seconds, _LOOK))
            cpu = spent.per_minute()["exporter"]
            scrapes = [page.seconds for _, page in _pages(url, _SCRAPED, _APART)]
            seen_now = usage(pid)
    return {
        "queues": queues,
        "totals_after": totals_after,
        "full_view": full_view,
        "reading": _reading([page for _, page in pages], queues),
        "scrape": median(scrapes),
        "cpu": cpu,
        "rss": seen_now.rss,
        "peak": seen_now.peak,
        "series": pages[-1][1].series,
        "bytes": len(pages[-1][1].text),
        "oldest_totals": max(oldest(pages), default=None),
    }


def _pages(url: str, seconds: float, every: float) -> Iterator[tuple[float, ScrapedPage]]:
    """Scrape periodically; yield the time and the page."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(every)
        yield time.monotonic(), scrape(url)


def _reading(pages: list[ScrapedPage], queues: int) -> float | None:
    """Return the median seconds of reading the totals, without the simulated waiting time of the broker."""
    took = median([by_label(page.text, "ackscope_poll_duration_seconds", "family").get("queues") for page in pages])
    pace = (FULL_US if queues <= 500 else TOTALS_US) * queues / 1e6
    return None if took is None else max(0.0, took - pace)


def _doubling(small: dict[str, Any], large: dict[str, Any]) -> dict[str, Any]:
    """Return the growth of each cost per doubling of the queues, between two sizes."""
    steps = math.log2(large["queues"] / small["queues"])
    return {
        "from": small["queues"],
        "to": large["queues"],
        **{name: per_doubling(small[name], large[name], steps) for name in _GROWING},
    }


def per_doubling(small: float | None, large: float | None, steps: float) -> float | None:
    """Return the growth per doubling, from two values `steps` doublings apart.

    None if the first value is missing or zero, or the second is missing.
    """
    if not small or large is None:
        return None
    return (large / small) ** (1 / steps) if large > 0 else 0.0


def lines(document: Document) -> list[str]:
    """Return the table of sizes and the table of doublings."""
    head = ("queues", "totals s", "view s", "read s", "scrape ms", "CPU", "MB RSS", "series", "MB page")
    rows = [
        (
            str(each["queues"]),
            f"{each['totals_after']:.1f}",
            f"{each['full_view']:.1f}",
            _figure(each["reading"], 1, 3),
            _figure(each["scrape"], 1000, 1),
            f"{each['cpu']:.2f}",
            f"{each['peak'] / MB:.0f}",
            str(each["series"]),
            f"{each['bytes'] / MB:.2f}",
        )
        for each in document["sizes"]
    ]
    growth = [
        (f"{each['from']} -> {each['to']}", *(_figure(each[name], 1, 2) for name in _GROWING))
        for each in document["doublings"]
    ]
    worst = max((each[name] or 0.0 for each in document["doublings"] for name in _GROWING), default=0.0)
    return [
        f"shapes of RabbitMQ {document['broker']}, answered at its pace; budget {document['budget']:g} of a core",
        "",
        *table(head, rows),
        "",
        "times as much for twice the queues; 2 is linear",
        *table(("", "reading", "scrape", "CPU", "MB RSS"), growth),
        "",
        f"linear or better: {'yes' if worst <= LINEAR else 'NO'}, the largest is {worst:.2f}",
        _NOTE,
    ]


def _figure(value: float | None, factor: float, digits: int) -> str:
    return "-" if value is None else f"{value * factor:.{digits}f}"


BENCH = Bench(
    name="growth",
    room="exporter",
    shows="1,000 to 100,000 queues against a server that replays recorded shapes",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--queues", "1000", "10000", "50000", "--seconds", "15"),
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
