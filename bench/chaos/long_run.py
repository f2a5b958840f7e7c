"""Everything of ackscope for hours at 10,000 queues that come and go, undisturbed: does anything grow?

An exporter with all probes and landing files, the stream over these files, and the dashboard with two pages open.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import psutil

from ackscope.errors import BrokerError
from bench.bench import Bench, Document, progress
from bench.dashboard.scene import dashboard
from bench.dashboard.viewer import Viewer
from bench.exporter.busy import busy_broker, counted
from bench.exporter.goals import Goal
from bench.exporter.scraping import scrape
from bench.exporter.soak import FLAT, KINDS, churn, figures, is_flat, trend
from bench.exporting import exporting
from bench.tables import table
from bench.usage import MB, usage
from lab.demo.services import Services

PAGES = ("", "queues")
"""Pages that stay open."""

_LOOK = 10.0
_SCRAPE_EVERY = 15.0
_LANDING = "landing files"
_NICE = 5
# The landing folder is full within half an hour at 10,000 queues; from then on the exporter removes the oldest files.
_LANDING_MB = 40

Samples = list[dict[str, float]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--broker", default="4.3", help="version (default 4.3)")
    parser.add_argument("--queues", type=int, default=10_000, help="how many (default 10000)")
    parser.add_argument("--minutes", type=float, default=180, metavar="N", help="how long (default 180)")
    parser.add_argument("--churn", type=int, default=60, metavar="N", help="made and deleted a minute (default 60)")
    parser.add_argument(
        "--landing-mb", type=int, default=_LANDING_MB, metavar="N", help="limit of landing (default 40)"
    )


def measure(args: argparse.Namespace) -> Document:
    """Watch all processes for the whole run."""
    # It runs next to other work for a long time.
    os.nice(_NICE)
    samples: dict[str, Samples] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ackscope-bench-")))
        lab = stack.enter_context(busy_broker(args.broker, args.queues, 100))
        node, landing, rollups = lab.nodes[0], folder / "landing", folder / "rollups"
        landing.mkdir()
        root = {
            "landing": {"directory": str(landing), "max_bytes": args.landing_mb * MB},
            "history": {"rollups": str(rollups)},
        }
        exporter = stack.enter_context(exporting(node, root=root))
        services = Services(folder)
        stack.callback(services.stop)
        words = ("--landing", str(landing), "--rollups", str(rollups), "--trigger", "30s")
        stream = services.start_python("stream", "ackscope", "pipeline", "stream", *words, grace=60).process
        page, url = stack.enter_context(dashboard(exporter.url, rollups))
        made = stack.enter_context(churn(node, args.queues, args.churn))
        progress(f"{args.minutes:g} minutes")
        began = time.monotonic()
        until = began + args.minutes * 60
        viewers = [_Viewing(url, path, until) for path in PAGES]
        processes: dict[str, Callable[[], int | None]] = {
            "exporter": lambda: exporter.process.pid,
            "probes": exporter.probe_pid,
            "stream": lambda: stream.pid,
            "its Java": lambda: _java(stream.pid),
            "dashboard": lambda: page,
        }
        due_scrape, failed = began, 0
        while (now := time.monotonic()) < until:
            if now >= due_scrape:
                due_scrape += _SCRAPE_EVERY
                failed += not _scraped(exporter.url)
            _look(samples, processes, landing, now - began)
            time.sleep(_LOOK)
        pids = {name: find() for name, find in processes.items()}
        left = counted(node)
    trends = {who: _trends(seen) for who, seen in samples.items()}
    ended = [name for name, pid in pids.items() if pid is None or pid != _pid(samples, name)]
    failures = [it.failure for it in viewers if it.failure]
    grown = [f"{who}, {kind}" for who, each in trends.items() for kind, it in each.items() if not is_flat(it)]
    goals = [
        Goal(f"values that grow by more than {FLAT * 100:g} %", float(len(grown)), 0.0),
        Goal("processes that ended, scrapes and pages that failed", float(len(ended) + failed + len(failures)), 0.0),
    ]
    return {
        "broker": lab.broker,
        "queues": args.queues,
        "queues_at_the_end": left,
        "minutes": args.minutes,
        "made": made["made"],
        "deleted": made["deleted"],
        "trends": trends,
        "grown": grown,
        "ended": ended,
        "failed_scrapes": failed,
        "failed_pages": failures,
        "samples": samples,
        "goals": [goal.as_dict() for goal in goals],
    }


def _java(stream: int) -> int | None:
    with suppress(psutil.Error):
        return next((it.pid for it in psutil.Process(stream).children(recursive=True) if it.name() == "java"), None)
    return None


class _Viewing(Thread):
    """A page that somebody has open.

    Attributes:
        failure: why it failed; "" if it did not.
    """

    def __init__(self, url: str, path: str, until: float) -> None:
        super().__init__(name=f"viewer-{path or 'now'}", daemon=True)
        self.failure = ""
        self._url, self._path, self._until = url, path, until
        self.start()

    def run(self) -> None:
        try:
            with Viewer(self._url, self._path) as viewer:
                viewer.watch(self._until)
        except BrokerError as error:
            self.failure = str(error)


def _scraped(url: str) -> bool:
    try:
        return bool(scrape(f"{url}/metrics").text)
    except BrokerError:
        return False


def _look(
    samples: dict[str, Samples], processes: Mapping[str, Callable[[], int | None]], landing: Path, at: float
) -> None:
    """Add a sample of each process that runs, and of the landing folder."""
    for name, find in processes.items():
        with suppress(OSError):
            pid = find()
            if pid is not None:
                seen = usage(pid)
                values = {kind: float(getattr(seen, kind)) for kind in KINDS}
                samples.setdefault(name, []).append({"at": at, "pid": float(pid), **values})
    samples.setdefault(_LANDING, []).append({"at": at, "bytes": float(_bytes(landing))})


def _bytes(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*.parquet"):
        # A file may be removed after it was listed.
        with suppress(OSError):
            total += path.stat().st_size
    return total


def _pid(samples: Mapping[str, Samples], name: str) -> int | None:
    """The first process that had this name."""
    return int(samples[name][0]["pid"]) if name in samples else None


def _trends(seen: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    kinds = [kind for kind in seen[0] if kind not in {"at", "pid"}]
    return {kind: trend([(each["at"], each[kind]) for each in seen]) for kind in kinds}


def lines(document: Document) -> list[str]:
    """A line for each process and kind, and goals."""
    rows = []
    for who, each in document["trends"].items():
        for kind, it in each.items():
            what, *values = figures(kind, it)
            rows.append((f"{who}, {what}", *values, "yes" if is_flat(it) else "NO"))
    churned = f"{document['made']} made, {document['deleted']} deleted"
    return [
        f"RabbitMQ {document['broker']}, {document['queues']} queues, {document['minutes']:g} minutes; {churned}",
        "",
        *table(("", "first third", "last third", "growth", "slope", "flat"), rows),
        "",
        *(f"ended: {name}" for name in document["ended"]),
        *(f"failed: {failure}" for failure in document["failed_pages"]),
        f"scrapes that failed: {document['failed_scrapes']}",
        *(Goal(**goal).line() for goal in document["goals"]),
    ]


BENCH = Bench(
    name="long_run",
    room="chaos",
    shows="everything together for hours, with many queues that come and go: does anything grow?",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--minutes", "5", "--queues", "1000"),
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
