"""Delay from a landing file to its rows on the page, at 2,000 probe messages per second and 10,000 queues."""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.bench import Bench, Document, progress
from bench.exporter.goals import Goal
from bench.pipeline.live import DEEP, LandedSet, LandingLoad, LiveLanding
from bench.tables import median, quantile, table
from bench.usage import MB, cpu_seconds, usage
from dashboard.data import rollups

CLUSTER = "shop"
MEDIAN, TAIL = 15.0, 30.0
_POLL_SECONDS = 0.5
# Seconds that the stream has to ingest the history that was landed before its start.
_CATCH_UP_SECONDS = 300.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--minutes", type=float, default=10.0, help="duration of the measurement (default 10)")
    parser.add_argument("--before", type=float, default=50.0, help="minutes landed before the start (default 50)")
    parser.add_argument("--messages", type=int, default=2000, help="probe messages a second (default 2000)")
    parser.add_argument("--queues", type=int, default=10_000, help="(default 10000)")
    parser.add_argument(
        "--changing", type=float, default=0.2, help="share of queues that change within 10 s (default 0.2)"
    )


def measure(args: argparse.Namespace) -> Document:
    """Land a history, start a stream over it, then land in real time."""
    load = LandingLoad(args.messages, args.queues, args.changing)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        writer = LiveLanding(root / "landing", load, CLUSTER)
        now = time.time()
        progress(f"landing the last {args.before:g} minutes")
        writer.past(now - args.before * 60, now)
        with writer, _streaming(root) as stream:
            seen = _VisibilityWatch(root / "rollups", writer)
            progress("the stream ingests what was there before")
            seen.wait(_CATCH_UP_SECONDS)
            progress(f"measuring for {args.minutes:g} minutes")
            cpu, began = cpu_seconds(stream.pid), time.monotonic()
            loads = seen.watch(args.minutes * 60)
            cpu = (cpu_seconds(stream.pid) - cpu) / (time.monotonic() - began)
            delays = seen.delays()
            memory = sum(usage(pid).peak for pid in _family(stream.pid)) / MB
    goals = [
        Goal("landing file to row visible, median, s", median(delays), MEDIAN),
        Goal("landing file to row visible, 99th percentile, s", quantile(delays, 0.99), TAIL),
    ]
    return {
        "messages_per_second": args.messages,
        "queues": args.queues,
        "changing": args.changing,
        "files": len(delays),
        "delays": delays,
        "cpu_cores": cpu,
        "peak_mb": memory,
        "load": max(loads, default=0.0),
        "goals": [goal.as_dict() for goal in goals],
    }


class _VisibilityWatch:
    """Reads the rollups as the page does, and records when each set of files was visible."""

    def __init__(self, root: Path, writer: LiveLanding) -> None:
        self._root, self._writer = root, writer
        self._at: dict[int, float] = {}
        self._first = self._last = 0

    def wait(self, seconds: float) -> None:
        """Wait until everything landed so far is visible; only later files are measured."""
        self._first = len(self._writer.landed) + 1
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self._visible(self._writer.landed[self._first - 2]):
            time.sleep(_POLL_SECONDS)
        self._first = len(self._writer.landed) + 1

    def watch(self, seconds: float) -> list[float]:
        """Poll for some seconds, then until the last set is visible; return the machine's load meanwhile."""
        loads: list[float] = []
        deadline, last = time.monotonic() + seconds, None
        while True:
            known = len(self._writer.landed)
            if last is None and time.monotonic() > deadline:
                last = self._last = known
            waiting = [it for it in self._writer.landed[self._first - 1 : last] if it.number not in self._at]
            if last is not None and (not waiting or time.monotonic() > deadline + 4 * TAIL):
                return loads
            self._note(waiting)
            loads.append(os.getloadavg()[0])
            time.sleep(_POLL_SECONDS)

    def delays(self) -> list[float]:
        """Return the seconds from each set of files to its rows; for sets that never became visible, until now."""
        sets = self._writer.landed[self._first - 1 : self._last]
        return [self._at.get(it.number, time.time()) - it.renamed for it in sets]

    def _note(self, waiting: list[LandedSet]) -> None:
        if waiting:
            messages, marker = self._look()
            for it in waiting:
                if self._there(it, messages, marker):
                    self._at[it.number] = time.time()

    def _visible(self, it: LandedSet) -> bool:
        return self._there(it, *self._look())

    @staticmethod
    def _there(it: LandedSet, messages: dict[int, int], marker: int) -> bool:
        newest = max(it.minutes)
        return marker >= it.number and messages.get(newest, 0) >= it.minutes[newest]

    def _look(self) -> tuple[dict[int, int], int]:
        """Return the messages by minute, and the number of the newest file, which is the depth of the marker queue."""
        end = datetime.fromtimestamp(time.time() + 60, UTC).replace(second=0, microsecond=0)
        history = rollups.read(self._root, CLUSTER, end - timedelta(minutes=4), end)
        messages: dict[int, int] = {}
        for minute, found in zip(history.outcomes["minute"], history.outcomes["messages"], strict=True):
            messages[int(minute.timestamp())] = messages.get(int(minute.timestamp()), 0) + int(found)
        deepest = history.depth["messages_ready_max"].max() if len(history.depth) else 0
        return messages, int(deepest) // DEEP


@contextmanager
def _streaming(root: Path) -> Iterator[subprocess.Popen[bytes]]:
    folders = ["--landing", str(root / "landing"), "--rollups", str(root / "rollups")]
    stream = subprocess.Popen([sys.executable, "-m", "ackscope", "pipeline", "stream", *folders])
    try:
        yield stream
    finally:
        stream.terminate()
        stream.wait(60)


def _family(pid: int) -> list[int]:
    import psutil  # noqa: PLC0415

    return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]


def lines(document: Document) -> list[str]:
    """The figures, and the goals."""
    delays = document["delays"]
    rows = [
        ("files measured", str(document["files"])),
        ("median", f"{median(delays) or 0:.1f} s"),
        ("95th percentile", f"{quantile(delays, 0.95) or 0:.1f} s"),
        ("99th percentile", f"{quantile(delays, 0.99) or 0:.1f} s"),
        ("longest", f"{max(delays, default=0):.1f} s"),
        ("processor of the stream", f"{document['cpu_cores']:.2f} cores"),
        ("memory of the stream at its peak", f"{document['peak_mb']:.0f} MB"),
        ("load of the machine meanwhile, at most", f"{document['load']:.1f}"),
    ]
    head = (f"{document['messages_per_second']} messages/s, {document['queues']} queues", "")
    return [*table(head, rows), "", *(Goal(**goal).line() for goal in document["goals"])]


BENCH = Bench(
    "freshness",
    "delay from a landing file to its rows on the page",
    measure,
    lines,
    add_arguments,
    short=("--minutes", "5"),
    room="pipeline",
)

if __name__ == "__main__":
    sys.exit(BENCH.main())
