"""Scrapes of a large page from memory: alone, and beside clients that try to keep them out."""

import argparse
import base64
import contextlib
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import bcrypt

from ackscope.errors import BrokerError
from bench.bench import Bench, Document, progress
from bench.exporter.goals import Goal, ratio
from bench.exporter.scraping import ACCEPT
from bench.tables import ms, table

_HERE = Path(__file__).resolve()
_SERVER = _HERE.with_name("in_memory.py")
_LOGIN = base64.b64encode(b"ann:secret").decode()
_TIMEOUT = 10.0
_PAUSE = 0.02
_MOST, _LONGEST = 1.2, 1.0
"""Goals: p99 of a scrape alone as a multiple of that of the other checkout, and p99 beside attackers in seconds."""


@dataclass(frozen=True, slots=True)
class Served:
    """A serving process: its URL and the samples of its page."""

    url: str
    samples: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--queues", type=int, default=9000, help="(default 9000, which are 200,000 samples)")
    parser.add_argument("--scrapes", type=int, default=300, help="of each kind (default 300)")
    parser.add_argument("--clients", type=int, default=150, help="attackers (default 150)")
    parser.add_argument(
        "--other", type=Path, metavar="DIR", help="another checkout to compare with, such as an older one"
    )


def measure(args: argparse.Namespace) -> Document:
    """Scrape the servers in turns, then each beside its attackers."""
    trees = {"this": _HERE.parents[2], **({} if args.other is None else {"other": args.other.resolve()})}
    with contextlib.ExitStack() as held:
        servers = {name: held.enter_context(_serving(tree, args.queues)) for name, tree in trees.items()}
        alone = _alone(servers, args.scrapes)
        rows: list[dict[str, Any]] = []
        for name, served in servers.items():
            progress(f"{args.clients} attackers of {name}")
            with _attacking(served.url, args.clients) as attacked:
                time.sleep(2)
                beside = [_timed(served.url) for _ in range(args.scrapes)]
            rows.append(
                {
                    "checkout": name,
                    "samples": served.samples,
                    **{kind: _summary(seconds) for kind, seconds in alone[name].items()},
                    "attacked": _summary(beside),
                    "requests": attacked,
                }
            )
    this, other = rows[0], rows[1] if len(rows) > 1 else None
    goals = [Goal(f"p99 of a scrape beside {args.clients} attackers, seconds", this["attacked"]["p99"], _LONGEST)]
    if other is not None:
        kinds = (kind for kind in ("gzip", "plain"))
        goals += [
            Goal(
                f"p99 of a scrape ({kind}), in times of the other checkout's",
                ratio(this[kind]["p99"], other[kind]["p99"]),
                _MOST,
            )
            for kind in kinds
        ]
    return {"rows": rows, "goals": [goal.as_dict() for goal in goals]}


def _alone(servers: dict[str, Served], scrapes: int) -> dict[str, dict[str, list[float]]]:
    """Seconds of scrapes of each server by kind, in turns, so that all meet the same noise."""
    measured: dict[str, dict[str, list[float]]] = {name: {"gzip": [], "plain": []} for name in servers}
    for number in range(scrapes):
        for name in sorted(servers, reverse=number % 2 == 1):
            for kind, seconds in measured[name].items():
                found = _timed(servers[name].url, compressed=kind == "gzip")
                if found is not None and number:
                    seconds.append(found)
    return measured


def _summary(seconds: list[float] | list[float | None]) -> dict[str, Any]:
    """Middle, p99 and maximum; a scrape without an answer counts as one that takes until its timeout."""
    known = sorted(_TIMEOUT if each is None else each for each in seconds)
    return {
        "p50": statistics.median(known),
        "p99": known[min(len(known) - 1, int(len(known) * 0.99))],
        "max": known[-1],
        "failed": sum(each is None for each in seconds),
    }


def _timed(url: str, *, compressed: bool = True) -> float | None:
    """Seconds of one scrape over a new connection, None without a complete answer."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=_TIMEOUT)
    encoding = "gzip" if compressed else "identity"
    headers = {"Accept": ACCEPT, "Accept-Encoding": encoding, "Authorization": f"Basic {_LOGIN}"}
    began = time.perf_counter()
    try:
        connection.request("GET", "/metrics", headers=headers)
        answer = connection.getresponse()
        answer.read()
        seconds = time.perf_counter() - began
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
        time.sleep(_PAUSE)
    return seconds if answer.status == 200 else None


@contextmanager
def _serving(tree: Path, queues: int) -> Iterator[Served]:
    """Run the server of a checkout."""
    with tempfile.TemporaryDirectory(prefix="ackscope-bench-") as folder:
        web = Path(folder) / "web.yml"
        web.write_text(f"basic_auth_users: {{ann: '{bcrypt.hashpw(b'secret', bcrypt.gensalt(10)).decode()}'}}\n")
        process = subprocess.Popen(
            [sys.executable, str(_SERVER), str(queues), str(web)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree)},
        )
        try:
            words = (process.stdout.readline() if process.stdout else "").split()
            if len(words) != 2:
                raise BrokerError(f"the server of {tree} did not start")
            yield Served(words[0], int(words[1]))
        finally:
            process.terminate()
            process.communicate()


@contextmanager
def _attacking(url: str, count: int) -> Iterator[dict[str, int]]:
    """Attack a server while the block runs; fills in the number of requests of each kind."""
    words = [sys.executable, "-m", "bench.exporter.attackers", url, str(count)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    requests: dict[str, int] = {}
    try:
        yield requests
    finally:
        text, _ = process.communicate("")
        requests.update(json.loads(text or "{}"))


def lines(document: Document) -> list[str]:
    """Return a row for each checkout and kind of scrape, and the goals."""
    rows = [
        (row["checkout"], kind, *(ms(row[kind][figure]) for figure in ("p50", "p99", "max")), str(row[kind]["failed"]))
        for row in document["rows"]
        for kind in ("gzip", "plain", "attacked")
    ]
    requests = [
        f"attackers of {row['checkout']}: " + ", ".join(f"{count} {kind}" for kind, count in row["requests"].items())
        for row in document["rows"]
    ]
    return [
        f"{document['rows'][0]['samples']} samples from memory, each scrape over a new connection",
        "",
        *table(("checkout", "scrapes", "p50 ms", "p99 ms", "max ms", "failed"), rows),
        "",
        *requests,
        "",
        *(Goal(**goal).line() for goal in document["goals"]),
    ]


BENCH = Bench(
    name="hostile",
    room="exporter",
    shows="scrapes of a large page, alone and beside clients that try to keep them out",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--scrapes", "100"),
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
