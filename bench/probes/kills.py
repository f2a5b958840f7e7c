"""Probe processes killed at random moments: objects left on the broker, and availability of the exporter."""

import argparse
import random
import threading
import time
from typing import Any, Self

import psutil
import requests

from bench.bench import Bench, Document, progress
from bench.exporting import Exporter, exporting, wait_for
from bench.probes.child import ProbeProcess
from bench.probes.users import Users
from bench.tables import ms, table
from lab.cluster import start_lab
from probes.settings import ProbesSettings

_LONGEST_LIFE = 4.0
_CLEAN = 20.0
_SWEPT_WITHIN = 60.0
_EVERY = 0.05


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--broker", default="4.3", help="version (default 4.3)")
    parser.add_argument("--kills", type=int, default=50, help="all together (default 50)")
    parser.add_argument(
        "--of-exporter",
        type=int,
        default=5,
        help="those under a running exporter, which waits longer each time (default 5)",
    )


def measure(args: argparse.Namespace) -> Document:
    """Record the objects of a clean run, kill probe processes, then compare after a last start by the exporter."""
    settings = ProbesSettings()
    chance = random.Random()  # noqa: S311  picks moments, guards nothing
    with start_lab(args.broker) as lab:
        node = lab.nodes[0]
        users = Users(node, settings.prefix)
        users.make()
        before = users.objects()
        progress(f"one clean run of {_CLEAN:g} s: what the probes use")
        in_use = _in_use(users, node.amqp, settings)
        for number in range(args.kills - args.of_exporter):
            if number % 10 == 0:
                progress(f"kills of a probe process by itself: {number} of {args.kills - args.of_exporter}")
            with ProbeProcess(node.amqp, settings) as probe:
                time.sleep(chance.uniform(0.2, _LONGEST_LIFE))
                probe.kill()
        after_kills = users.probes_objects()
        with exporting(node) as exporter, _Scrapes(exporter) as scrapes:
            for number in range(args.of_exporter):
                progress(f"kills under the exporter: {number} of {args.of_exporter}")
                _kill_child(exporter, chance)
            progress("the last start")
            wait_for(exporter.probe_pid, "the probe process")
            left, ready = _wait_swept(users, in_use)
        after = users.objects()
        return {
            "broker": lab.broker,
            "kills": args.kills,
            "of_exporter": args.of_exporter,
            "in_use": sorted(in_use),
            "after_kills": sorted(after_kills - in_use),
            "left": sorted(left),
            "missing": sorted(in_use - ready),
            "changed": [kind for kind in before if before[kind] != after[kind]],
            "user_objects": {kind: len(found) for kind, found in before.items()},
            "scrapes": scrapes.count,
            "scrapes_failed": scrapes.failed,
            "slowest_scrape": scrapes.slowest,
        }


def _in_use(users: Users, amqp: str, settings: ProbesSettings) -> set[str]:
    """Return all objects that probes use during an undisturbed run."""
    seen: set[str] = set()
    with ProbeProcess(amqp, settings) as probe:
        probe.wait_running()
        deadline = time.monotonic() + _CLEAN
        while time.monotonic() < deadline:
            seen |= users.probes_objects()
            time.sleep(0.5)
    return seen


def _kill_child(exporter: Exporter, chance: random.Random) -> None:
    """Kill the exporter's probe process at a random time after its start, and wait for the next one."""
    pid = wait_for(exporter.probe_pid, "the probe process")
    time.sleep(chance.uniform(0.2, _LONGEST_LIFE))
    process = psutil.Process(pid)
    process.kill()
    wait_for(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE, "its end")
    wait_for(lambda: exporter.probe_pid() not in {None, pid}, "the next probe process")


def _wait_swept(users: Users, in_use: set[str]) -> tuple[set[str], set[str]]:
    """Wait until the probes have deleted the objects that they do not use, or until the time is over.

    Returns the remaining unused objects, and all objects of the probes.
    """
    deadline = time.monotonic() + _SWEPT_WITHIN
    while True:
        there = users.probes_objects()
        left = there - in_use
        if (not left and there) or time.monotonic() > deadline:
            time.sleep(_LONGEST_LIFE)
            return users.probes_objects() - in_use, users.probes_objects()
        time.sleep(0.5)


class _Scrapes:
    """Requests `/metrics` continuously while the block runs."""

    def __init__(self, exporter: Exporter) -> None:
        self._exporter = exporter
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.count = self.failed = 0
        self.slowest = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(10)

    def _run(self) -> None:
        while not self._over.wait(_EVERY):
            began = time.monotonic()
            self.count += 1
            try:
                answered = self._exporter.get("/metrics").ok
            except requests.RequestException:
                answered = False
            self.failed += not answered
            self.slowest = max(self.slowest, time.monotonic() - began)


def lines(document: Document) -> list[str]:
    """The table."""
    direct = document["kills"] - document["of_exporter"]
    users: dict[str, Any] = document["user_objects"]
    rows = [
        (
            "SIGKILLs of the probe process",
            f"{document['kills']} ({direct} alone, {document['of_exporter']} under an exporter)",
        ),
        ("objects of the probes in use, in peace", str(len(document["in_use"]))),
        ("beyond those, right after the kills", str(len(document["after_kills"]))),
        ("beyond those, after one start", str(len(document["left"]))),
        ("missing after one start", str(len(document["missing"]))),
        ("user objects", ", ".join(f"{count} {kind}" for kind, count in users.items() if kind != "messages")),
        ("changed among them, or their messages", ", ".join(document["changed"]) or "nothing"),
        ("scrapes of /metrics meanwhile", f"{document['scrapes']}, failed {document['scrapes_failed']}"),
        ("slowest of them", f"{ms(document['slowest_scrape'])} ms"),
    ]
    return [
        f"RabbitMQ {document['broker']}; killed 0.2 to {_LONGEST_LIFE:g} s after its start",
        "",
        *table(("", "seen"), rows),
        *(f"left: {name}"[:80] for name in document["left"]),
        *(f"missing: {name}"[:80] for name in document["missing"]),
    ]


BENCH = Bench(
    name="kills",
    shows="the probe process killed at random moments: what is left, and who serves on",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--kills", "20", "--of-exporter", "3"),
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
