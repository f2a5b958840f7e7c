"""Comparison with lower bounds: curl fetching the same bytes, and a server with the page in memory."""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ackscope.clock import SystemClock
from ackscope.errors import BrokerError, MissingPart
from bench.bench import Bench, Document, progress
from bench.exporter.busy import busy_broker
from bench.exporter.contenders import totals_seen
from bench.exporter.recording import Recording, recording_proxy
from bench.exporter.scraping import fetch, scrape
from bench.exporting import exporting, wait_for
from bench.tables import median, table
from bench.usage import MB
from exporter.broker.families import FAMILIES
from exporter.broker.reader import BrokerReader
from exporter.broker.settings import ManagementSettings
from lab.node import LabNode

POLLING, SERVING = 1.2, 2.0
"""Goals: maximum duration as a multiple of the lower bound."""

TOTALS = "totals"
READINGS = (*FAMILIES, TOTALS)
"""All families in full, and the totals of all queues, which the exporter polls on large clusters."""

_SIDES = ("ours", "curl")
_LARGE = ("queues", TOTALS)
_REST = 3.0
"""Seconds between two readings of a list, because the broker caches it."""

_STATIC = Path(__file__).with_name("static.py")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--broker", default="4.3", help="version (default 4.3)")
    parser.add_argument("--queues", type=int, default=10_000, help="how many (default 10000)")
    parser.add_argument("--pairs", type=int, default=5, help="readings of each, alternating (default 5)")
    parser.add_argument("--scrapes", type=int, default=50, help="scrapes of each, alternating (default 50)")


def measure(args: argparse.Namespace) -> Document:
    """Measure polling, then serving, on one broker."""
    if shutil.which("curl") is None:
        raise MissingPart("curl is missing: apt-get install curl")
    with busy_broker(args.broker, args.queues, 100) as lab:
        node = lab.nodes[0]
        polling = _polling(node, args.pairs)
        progress("scrapes")
        serving = _serving(node, args.queues, args.scrapes)
        return {"broker": lab.broker, "queues": args.queues, "pairs": args.pairs, "polling": polling, **serving}


# ------------------------------------------------------------ polling


def _polling(node: LabNode, pairs: int) -> list[dict[str, Any]]:
    targets = _targets(node)
    reader = BrokerReader(ManagementSettings(url=node.management), SystemClock())
    took: dict[str, dict[str, list[float]]] = {name: {side: [] for side in _SIDES} for name in READINGS}
    try:
        for number in range(pairs):
            progress(f"readings, {number + 1} of {pairs}")
            # Alternate the order, so that neither side benefits from being first.
            for name, side in product(READINGS, _SIDES[::-1] if number % 2 else _SIDES):
                took[name][side].append(_read(reader, name) if side == "ours" else curl(node.management, targets[name]))
                time.sleep(_REST if name in _LARGE else 0)
    finally:
        reader.close()
    return [
        {"family": name, "requests": len(targets[name]), **{side: median(seconds) for side, seconds in each.items()}}
        for name, each in took.items()
    ]


def _read(reader: BrokerReader, name: str) -> float:
    """Return the seconds of one reading, including decoding.

    Raises:
        BrokerError: the broker does not support queue totals.
    """
    reading = reader.queues.read_once(reader.version, 0.0, statistics=False) if name == TOTALS else reader.read(name)
    if reading is None:
        raise BrokerError("the broker does not support queue totals")
    return reading.seconds


def _targets(node: LabNode) -> dict[str, list[str]]:
    """Return the request targets of one reading of each family, in order."""
    asked: list[str] = []
    found: dict[str, list[str]] = {}
    with recording_proxy(node.management, Recording(), asked) as base:
        reader = BrokerReader(ManagementSettings(url=base.replace("//", "//guest:guest@")), SystemClock())
        try:
            for _ in range(2):
                # Twice, because the first reading of some families sends extra requests to learn what the broker
                # supports.
                for name in READINGS:
                    asked.clear()
                    _read(reader, name)
                    found[name] = list(asked)
        finally:
            reader.close()
    return found


def curl(management: str, targets: list[str]) -> float:
    """Return the seconds that curl needs for the targets over one connection, without its start.

    Raises:
        BrokerError: curl failed.
    """
    address = urlsplit(management)
    words: list[str] = []
    for target in targets:
        words += ["-o", "/dev/null", f"http://{address.hostname}:{address.port}{target}"]
    user = f"{address.username}:{address.password}"
    done = subprocess.run(
        ["curl", "-s", "-u", user, "-w", "%{time_total}\n", *words], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise BrokerError(f"curl failed with {done.returncode}")
    return sum(float(line) for line in done.stdout.split())


# ------------------------------------------------------------ serving


def _serving(node: LabNode, queues: int, scrapes: int) -> dict[str, Any]:
    with exporting(node, probes=False) as exporter:
        url = f"{exporter.url}/metrics"
        wait_for(lambda: totals_seen(scrape(url).text) >= queues, f"{queues} queues in ackscope")
        # Wait until everything was read; from then on the page changes little.
        time.sleep(20)
        _, plain, _ = fetch(url, compressed=False)
        packed = fetch(url)[1]
        with _static(plain, packed) as static:
            took: dict[str, list[float]] = {name: [] for name in ("ours", "static", "ours gzip", "static gzip")}
            for _ in range(scrapes):
                for name, address, compressed in (
                    ("ours", url, False),
                    ("static", static, False),
                    ("ours gzip", url, True),
                    ("static gzip", static, True),
                ):
                    took[name].append(fetch(address, compressed=compressed)[0])
    return {
        "scrapes": scrapes,
        "bytes": len(plain),
        "sent": len(packed),
        "serving": {name: median(each) for name, each in took.items()},
    }


@contextmanager
def _static(plain: bytes, packed: bytes) -> Iterator[str]:
    """Run a process that answers every request with these bytes, and yield its URL."""
    with tempfile.TemporaryDirectory(prefix="ackscope-bench-") as folder:
        files = [Path(folder) / name for name in ("plain", "packed")]
        for path, body in zip(files, (plain, packed), strict=True):
            path.write_bytes(body)
        words = [sys.executable, str(_STATIC), *(str(path) for path in files)]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            yield process.stdout.readline().strip() if process.stdout else ""
        finally:
            process.terminate()
            process.communicate()


# ------------------------------------------------------------ the tables


def lines(document: Document) -> list[str]:
    """Return the tables of polling by family, and of serving."""
    ours = sum(each["ours"] for each in document["polling"])
    limit = sum(each["curl"] for each in document["polling"])
    families = [
        (each["family"], str(each["requests"]), *_compared(each["ours"], each["curl"]))
        for each in (*document["polling"], {"family": "all", "requests": "", "ours": ours, "curl": limit})
    ]
    serving = document["serving"]
    pages = [
        (name, f"{size / MB:.2f}", *_compared(serving[key], serving[f"static{key[4:]}"]))
        for name, key, size in (
            ("plain", "ours", document["bytes"]),
            ("gzip", "ours gzip", document["sent"]),
        )
    ]
    worst = max(serving[key] / serving[f"static{key[4:]}"] for key in ("ours", "ours gzip"))
    return [
        f"RabbitMQ {document['broker']}, {document['queues']} queues; the middle of {document['pairs']} pairs",
        "",
        *table(("reading", "requests", "ackscope ms", "curl ms", "times"), families),
        "",
        f"{'met' if ours <= POLLING * limit else 'NOT met'}: all together at most {POLLING:g} times as long as curl",
        "",
        *table(("page", "MB", "ackscope ms", "from memory ms", "times"), pages),
        "",
        f"{'met' if worst <= SERVING else 'NOT met'}: at most {SERVING:g} times as long as the same bytes from memory",
    ]


def _compared(ours: float, limit: float) -> tuple[str, str, str]:
    """Format both in milliseconds, and their quotient."""
    return f"{ours * 1000:.1f}", f"{limit * 1000:.1f}", f"{ours / limit:.2f}"


BENCH = Bench(
    name="limit",
    room="exporter",
    shows="polling beside curl for the same bytes, and scrapes beside the same bytes from memory",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--pairs", "4", "--scrapes", "20"),
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
