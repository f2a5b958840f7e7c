"""Restarts of the exporter, one after the other, while one of its receivers is away: notifications and landing rows.

Queues without a consumer come and go, each in a virtual host of its own; each is a finding. Three receivers get them: a
webhook that always answers, one behind Alertmanager, and one that answers at the end only.
"""

import argparse
import json
import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import requests
import yaml
from prometheus_client.parser import text_string_to_metric_families

from ackscope.errors import BrokerError
from bench.bench import Bench, Document, progress
from bench.exporting import wait_for
from bench.tables import median, table
from lab.cluster import start_lab
from lab.demo.alertmanager import start_alertmanager
from lab.demo.prometheus import answers
from lab.demo.services import Service, Services
from lab.node import LabNode
from lab.ports import free_ports

RULE = "no-consumer"
_EVERY = 15.0
_SHORTEST, _LONGEST = 45.0, 180.0
"""Life of a queue in seconds; it is longer than a restart, so that the exporter sees each of them."""
_SETTLE = 30.0
_SETTLED_WITHIN = 180.0
_OTHER_ROWS = ("prometheus", "sessions")
"""Families without a row for each poll: the endpoints are not configured, and sessions have the time of connections."""
# The finding comes with the first reading that shows it; what is measured is what follows.
_QUICK = {"consumers": {"no_consumer_growing": 1, "no_consumer_quiet": 1}, "early": 86400}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--broker", default="4.3", help="version (default 4.3)")
    parser.add_argument("--minutes", type=float, default=30, metavar="N", help="receiver away for (default 30)")
    parser.add_argument("--every", type=float, default=120, metavar="S", help="seconds between restarts (default 120)")
    parser.add_argument("--seed", type=int, help="of the lives of queues; printed (default: a new one)")


@dataclass(slots=True)
class Hook:
    """A webhook on loopback.

    Attributes:
        away: whether it refuses every message.
        arrived: what it accepted, in order.
    """

    away: bool = False
    arrived: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""

    @contextmanager
    def listening(self) -> Iterator["Hook"]:
        """Answer requests while the block runs."""
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if not hook.away:
                    hook.arrived.append(json.loads(body))
                self.send_response(503 if hook.away else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name of the base class
                """Print nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        self.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
        threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()

    def events(self) -> Counter[tuple[str, str]]:
        """Count (event, queue) of the messages of the exporter."""
        return Counter(
            (event["event"], event["finding"]["subject"]["name"]) for each in self.arrived for event in each["events"]
        )

    def alerts(self) -> Counter[tuple[str, str]]:
        """Count (status, queue) of the messages of Alertmanager; a firing alert that is sent again counts again."""
        return Counter(
            (alert["status"], alert["labels"]["name"])
            for each in self.arrived
            for alert in each["alerts"]
            if alert["labels"].get("rule") == RULE
        )


@dataclass(slots=True)
class Lives:
    """Queues that come and go, in a thread of its own.

    Each has a virtual host of its own: findings of one virtual host are joined.

    Attributes:
        gone: names of those that were deleted.
        alive: name -> monotonic time of its end.
    """

    node: LabNode
    dice: random.Random
    gone: set[str] = field(default_factory=set)
    alive: dict[str, float] = field(default_factory=dict)
    _over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Make a queue every 15 s, and delete those whose time has come."""
        due, number = time.monotonic(), 0
        while not self._over.wait(0.5):
            now = time.monotonic()
            if now >= due:
                due, number = now + _EVERY, number + 1
                self._make(f"restarts.{number:03d}", now)
            for name in [name for name, end in self.alive.items() if end <= now]:
                self._send("DELETE", f"vhosts/{name}")
                self.gone.add(name)
                del self.alive[name]

    def _make(self, name: str, now: float) -> None:
        self._send("PUT", f"vhosts/{name}")
        self._send("PUT", f"permissions/{name}/guest", {"configure": ".*", "write": ".*", "read": ".*"})
        self._send("PUT", f"queues/{name}/{name}", {"durable": True})
        message = {"properties": {}, "routing_key": name, "payload": "x", "payload_encoding": "string"}
        self._send("POST", f"exchanges/{name}/amq.default/publish", message)
        self.alive[name] = now + self.dice.uniform(_SHORTEST, _LONGEST)

    def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> None:
        requests.request(method, f"{self.node.management}/api/{path}", json=body, timeout=30).raise_for_status()

    def stop(self) -> None:
        """End the thread; the queues that are alive stay."""
        self._over.set()


@dataclass(slots=True)
class Restarted:
    """The exporter, stopped by SIGTERM and started again.

    Attributes:
        polled: family -> successful polls that it counted before each stop, over all lives.
        stops, gaps: seconds until it had ended; seconds from the signal until it was ready again.
        codes: exit codes.
    """

    services: Services
    config: Path
    listen: str
    polled: Counter[str] = field(default_factory=Counter)
    stops: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    _service: Service | None = None

    def start(self) -> None:
        """Start it and wait until it is ready."""
        self._service = self.services.start_python("exporter", "ackscope", "exporter", "--config", str(self.config))
        ready = f"http://{self.listen}/-/ready"
        self._service.wait_until(lambda: answers(ready), "a response from /-/ready", 60)

    def samples(self, name: str) -> dict[str, float]:
        """Return the values of a metric by the last of its labels."""
        text = requests.get(f"http://{self.listen}/metrics", timeout=30).text
        found = [it for family in text_string_to_metric_families(text) for it in family.samples if it.name == name]
        return {list(it.labels.values())[-1]: it.value for it in found}

    def stop(self) -> None:
        """Count its polls, and end it."""
        if self._service is None:
            raise BrokerError("the exporter was not started")
        attempts, failures = (self.samples(f"ackscope_poll_{kind}_total") for kind in ("attempts", "failures"))
        for family, many in attempts.items():
            if family in _OTHER_ROWS:
                continue
            self.polled[family] += int(many - failures.get(family, 0))
        began = time.monotonic()
        self._service.process.terminate()
        self.codes.append(self._service.process.wait(30))
        self.stops.append(time.monotonic() - began)
        self.services.running.remove(self._service)
        self._service = None

    def again(self) -> None:
        """Stop and start it."""
        began = time.monotonic()
        self.stop()
        self.start()
        self.gaps.append(time.monotonic() - began)


def measure(args: argparse.Namespace) -> Document:
    """Restart the exporter for some minutes, let the receiver return, and compare with what happened."""
    seed = args.seed if args.seed is not None else random.SystemRandom().randrange(1_000_000)
    up, pager, away = Hook(), Hook(), Hook(away=True)
    with (
        tempfile.TemporaryDirectory(prefix="ackscope-bench-") as name,
        start_lab(args.broker) as lab,
        up.listening(),
        pager.listening(),
        away.listening(),
    ):
        folder = Path(name)
        services = Services(folder)
        own, alertmanager = (f"127.0.0.1:{port}" for port in free_ports(2))
        lives = Lives(lab.nodes[0], random.Random(seed))  # noqa: S311  picks lives of queues, guards nothing
        thread = threading.Thread(target=lives.run, name="lives", daemon=True)
        try:
            start_alertmanager(services, folder / "alertmanager", listen=alertmanager, webhook=pager.url)
            exporter = Restarted(services, folder / "ackscope.yml", own)
            _write(exporter.config, lab.nodes[0], own, {"up": up, "away": away}, alertmanager)
            exporter.start()
            thread.start()
            _restart(exporter, args.minutes * 60, args.every)
            lives.stop()
            thread.join(60)
            # What has ended must be absent for this long after a restart.
            time.sleep(_SETTLE + 10)
            returned = time.monotonic()
            away.away = False
            wait_for(
                lambda: not any(exporter.samples("ackscope_delivery_waiting_findings").values()),
                "everything delivered",
                _SETTLED_WITHIN,
            )
            caught_up = time.monotonic() - returned
            wait_for(lambda: lives.gone <= _names(pager.alerts(), "resolved"), "resolved alerts", _SETTLED_WITHIN)
            exporter.stop()
        finally:
            lives.stop()
            services.stop()
        landed = _landed(folder / "landing")
    return {
        "broker": lab.broker,
        "seed": seed,
        "minutes": args.minutes,
        "restarts": len(exporter.gaps),
        "exit_codes": sorted(set(exporter.codes)),
        "stop_seconds": median(exporter.stops),
        "gap_seconds": median(exporter.gaps),
        "gap_longest": max(exporter.gaps, default=None),
        "findings": {"ended": len(lives.gone), "last": len(lives.alive)},
        "receivers": {
            "webhook": judged(lives.gone, set(lives.alive), up.events(), ("start", "resolve")),
            "behind Alertmanager": judged(lives.gone, set(lives.alive), pager.alerts(), ("firing", "resolved")),
            "away": judged(lives.gone, set(lives.alive), away.events(), ("start", "missed")),
        },
        "messages_after": len(away.arrived),
        "caught_up_seconds": caught_up,
        "polled": dict(exporter.polled),
        "landed": {family: landed[family] for family in exporter.polled},
    }


def _write(config: Path, node: LabNode, listen: str, hooks: dict[str, Hook], alertmanager: str) -> None:
    folder = config.parent
    receivers: dict[str, Any] = {name: {"webhook": {"url": hook.url}} for name, hook in hooks.items()}
    receivers["pager"] = {"alertmanager": {"url": f"http://{alertmanager}"}}
    document = {
        "listen": listen,
        "clusters": {"bench": {"management": {"url": node.management}}},
        "landing": {"directory": str(folder / "landing")},
        "diagnosis": _QUICK,
        "delivery": {
            "directory": str(folder / "delivery"),
            "receivers": receivers,
            "routes": [
                {"receiver": name, "severities": ["critical", "warning", "info"], "rules": [RULE]} for name in receivers
            ],
            "settle": f"{_SETTLE:g}s",
        },
    }
    config.write_text(yaml.safe_dump(document))


def _restart(exporter: Restarted, seconds: float, every: float) -> None:
    """Restart it again and again."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(every, left))
        exporter.again()
        progress(f"{len(exporter.gaps)} restarts, the last one took {exporter.gaps[-1]:.1f} s")


def _names(events: Counter[tuple[str, str]], kind: str) -> set[str]:
    return {name for each, name in events if each == kind}


def judged(ended: set[str], last: set[str], events: Counter[tuple[str, str]], kinds: tuple[str, str]) -> dict[str, int]:
    """Count the findings that were notified as they should.

    Args:
        ended: queues whose finding is over.
        last: queues whose finding is present.
        events: (kind, queue) -> how often it arrived.
        kinds: of a begin and of an end; "missed" stands for both.

    Returns:
        `once`: findings of which each expected event arrived once. `repeated`: one of them more often. `lost`: one of
        them never. `false`: events that were not expected.
    """
    begin, end = kinds
    over = [end] if end == "missed" else [begin, end]
    expected = {**dict.fromkeys(ended, over), **{name: [begin] for name in last}}
    counts = dict.fromkeys(("once", "repeated", "lost", "false"), 0)
    for name, wanted in expected.items():
        times = {events[kind, name] for kind in wanted}
        counts["lost" if 0 in times else "once" if times == {1} else "repeated"] += 1
    counts["false"] = sum(many for (kind, name), many in events.items() if kind not in expected.get(name, ()))
    return counts


def _landed(folder: Path) -> Counter[str]:
    """Count the successful polls of each family in the landing files."""
    polls = ds.dataset(folder / "poll_samples", partitioning="hive").to_table(columns=["family", "success"])
    return Counter(row["family"] for row in polls.to_pylist() if row["success"])


def lines(document: Document) -> list[str]:
    """The tables."""
    found, counts = document["findings"], ("once", "repeated", "lost", "false")
    polled, landed = document["polled"], document["landed"]
    lost = {family: many - landed[family] for family, many in polled.items() if many > landed[family]}
    caught_up, gap, longest = (document[name] for name in ("caught_up_seconds", "gap_seconds", "gap_longest"))
    broker = f"RabbitMQ {document['broker']}, {document['minutes']:g} minutes, seed {document['seed']}"
    return [
        f"{broker}: {found['ended']} findings began and ended, {found['last']} last",
        "",
        *table(
            ("receiver", *counts),
            [(name, *(str(each[kind]) for kind in counts)) for name, each in document["receivers"].items()],
        ),
        "",
        f"after its return: {document['messages_after']} messages to the receiver that was away, in {caught_up:.1f} s",
        f"restarts: {document['restarts']}; exit codes: {document['exit_codes']}",
        f"from SIGTERM until ready again: median {gap:.1f} s, longest {longest:.1f} s",
        f"from SIGTERM until it has ended: median {document['stop_seconds']:.1f} s",
        f"polls counted before the stops: {sum(polled.values())}; in landing files: {sum(landed.values())}",
        f"families with fewer polls in the files: {lost or 'none'}",
    ]


BENCH = Bench(
    name="restarts",
    shows="Notifications and landing rows while the exporter is restarted and a receiver is away.",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--minutes", "4", "--every", "40"),
    room="exporter",
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
