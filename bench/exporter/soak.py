"""Memory, files, sockets and threads of the exporter over an hour with 10,000 queues and queue churn."""

import argparse
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import requests

from bench.bench import Bench, Document, progress
from bench.exporter.busy import busy_broker, counted
from bench.exporter.contenders import details_seen
from bench.exporter.scraping import scrape
from bench.exporting import exporting
from bench.tables import median, table
from bench.usage import MB, usage
from lab.many import make_queues, names
from lab.node import LabNode

FLAT = 0.05
"""Limit of growth from the start to the end."""

WARM_UP, WARM_UP_SECONDS = 0.2, 720.0
"""Share of the run that is not evaluated, and the same in seconds for runs at least twice as long: first readings,
first reading of all details, and the ten minutes of history that diagnosis keeps."""

_LOOK = 10.0
_SCRAPE_EVERY = 15.0
_NOTE = (
    f"after the first {WARM_UP * 100:g} % of the run, or {WARM_UP_SECONDS / 60:g} minutes where half of it is left "
    "then; growth: the middle of the last third above that of the first; "
    f"slope: rise of the line of least squares over the run; flat: neither above {FLAT * 100:g} %"
)
KINDS = ("rss", "files", "sockets", "threads")
"""What is watched of a process."""
_UNITS = {"rss": ("MB RSS", 1 / MB), "bytes": ("MB", 1 / MB)}
_NICE = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--broker", default="4.3", help="version (default 4.3)")
    parser.add_argument("--queues", type=int, default=10_000, help="how many (default 10000)")
    parser.add_argument("--minutes", type=float, default=60, metavar="N", help="how long (default 60)")
    parser.add_argument(
        "--budget",
        type=float,
        metavar="B",
        help="share of a core of the broker that polling may take (default: its own)",
    )
    parser.add_argument("--churn", type=int, default=60, metavar="N", help="made and deleted a minute (default 60)")


def measure(args: argparse.Namespace) -> Document:
    """Watch one exporter for the whole run."""
    # It runs next to other work for a long time.
    os.nice(_NICE)
    samples: list[dict[str, float]] = []
    with busy_broker(args.broker, args.queues, 100) as lab:
        node = lab.nodes[0]
        root = {} if args.budget is None else {"poll": {"budget": args.budget}}
        with exporting(node, probes=False, root=root) as exporter, churn(node, args.queues, args.churn) as churned:
            began = time.monotonic()
            progress(f"{args.minutes:g} minutes")
            due_scrape, full_view = began, None
            while (now := time.monotonic()) < began + args.minutes * 60:
                if now >= due_scrape:
                    detailed = details_seen(scrape(f"{exporter.url}/metrics").text)
                    due_scrape += _SCRAPE_EVERY
                    if full_view is None and detailed >= args.queues:
                        full_view = now - began
                seen = usage(exporter.process.pid)
                samples.append({"at": now - began, **{kind: getattr(seen, kind) for kind in KINDS}})
                time.sleep(_LOOK)
        left = counted(node)
    return {
        "broker": lab.broker,
        "queues": args.queues,
        "queues_at_the_end": left,
        "minutes": args.minutes,
        "made": churned["made"],
        "deleted": churned["deleted"],
        "full_view": full_view,
        "budget": args.budget,
        "trends": {kind: trend([(each["at"], each[kind]) for each in samples]) for kind in KINDS},
        "samples": samples,
    }


@contextmanager
def churn(node: LabNode, queues: int, per_minute: int) -> Iterator[dict[str, int]]:
    """Create some queues every 5 s, so many a minute, delete the oldest of these, and yield the counts."""
    counts, ending = {"made": 0, "deleted": 0}, threading.Event()
    every = 5.0
    some = max(1, round(per_minute * every / 60))

    def run() -> None:
        session, first, alive = requests.Session(), queues, []
        while not ending.wait(every):
            fresh = names(some, first)
            first += some
            make_queues(node.management, fresh)
            counts["made"] += len(fresh)
            alive.extend(fresh)
            while len(alive) > per_minute:
                gone = session.delete(f"{node.management}/api/queues/%2F/{alive.pop(0)}", timeout=60)
                counts["deleted"] += gone.ok

    thread = threading.Thread(target=run, name="churn", daemon=True)
    thread.start()
    try:
        yield counts
    finally:
        ending.set()
        thread.join(70)


def trend(points: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Return the first and last value of a run after its warm-up, and its growth.

    Args:
        points: seconds since the start and value, in order.

    Returns:
        `first`, `last`: medians of the first and of the last third. `growth`: relative difference of `last` and
        `first`. `slope`: relative growth of the least squares line. All are None with too few points.
    """
    share = int(len(points) * WARM_UP)
    late = sum(at < WARM_UP_SECONDS for at, _ in points)
    judged = points[max(share, late if late <= len(points) // 2 else 0) :]
    third = len(judged) // 3
    if third < 1:
        return {"first": None, "last": None, "growth": None, "slope": None}
    first, last = (median([value for _, value in part]) for part in (judged[:third], judged[-third:]))
    return {
        "first": first,
        "last": last,
        "growth": None if not first or last is None else last / first - 1,
        "slope": _slope(judged),
    }


def _slope(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the rise of the least squares line over all points, relative to its start."""
    times, values = [at for at, _ in points], [value for _, value in points]
    mean_time, mean_value = sum(times) / len(times), sum(values) / len(values)
    spread = sum((at - mean_time) ** 2 for at in times)
    if not spread:
        return None
    rise = sum((at - mean_time) * (value - mean_value) for at, value in points) / spread
    start = mean_value + rise * (times[0] - mean_time)
    return rise * (times[-1] - times[0]) / start if start > 0 else None


def lines(document: Document) -> list[str]:
    """The table."""
    rows = []
    for kind, each in document["trends"].items():
        judged = "-" if each["growth"] is None or each["slope"] is None else "yes" if is_flat(each) else "NO"
        rows.append((*figures(kind, each), judged))
    churned = f"{document['made']} made, {document['deleted']} deleted"
    return [
        f"RabbitMQ {document['broker']}, {document['queues']} queues, {document['minutes']:g} minutes; {churned}",
        "",
        *table(("of the exporter", "first third", "last third", "growth", "slope", "flat"), rows),
        "",
        f"all queues seen with full statistics: {_seen(document['full_view'])}",
        _NOTE,
    ]


def _seen(seconds: float | None) -> str:
    return "not in this run: memory still grows by what is new" if seconds is None else f"after {seconds:.0f} s"


def is_flat(each: Mapping[str, Any]) -> bool:
    """Whether neither growth nor slope of a trend is over the limit; not if there are too few values."""
    if each["first"] == each["last"] == 0:
        return True
    return each["growth"] is not None and max(each["growth"], each["slope"] or 0.0) <= FLAT


def figures(kind: str, each: Mapping[str, Any]) -> tuple[str, ...]:
    """What was measured and its unit, then first and last value, growth and slope of its trend, as text."""
    what, factor = _UNITS.get(kind, (kind, 1.0))
    values = (_figure(each[name], factor) for name in ("first", "last"))
    return (what, *values, *(_percent(each[name]) for name in ("growth", "slope")))


def _figure(value: float | None, factor: float) -> str:
    return "-" if value is None else f"{value * factor:.1f}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share * 100:+.1f} %"


BENCH = Bench(
    name="soak",
    room="exporter",
    shows="many queues that come and go: memory, files, sockets and threads of the exporter",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--minutes", "2", "--queues", "2000", "--budget", "0.5"),
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
