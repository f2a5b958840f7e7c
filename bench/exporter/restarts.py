"""Restarts of the exporter, one after the other, while a receiver and the bucket are away: notifications, landing rows.

Queues without a consumer come and go, each in a virtual host of its own; each is a finding. Three receivers get them: a
webhook that always answers, one behind Alertmanager, and one that answers at the end only. Landing files go to a bucket
that cannot be reached until the end.
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
from urllib.parse import urlsplit

import requests
import yaml
from prometheus_client.parser import text_string_to_metric_families

from ackscope.errors import BrokerError
from bench.bench import Bench, Document, progress
from bench.exporting import bucket_rows, wait_for
from bench.tables import median, table
from bench.usage import MB
from lab.cluster import start_lab
from lab.demo.alertmanager import start_alertmanager
from lab.demo.prometheus import answers
from lab.demo.services import Service, Services
from lab.network_link import LinkState, NetworkLink
from lab.node import LabNode
from lab.ports import free_ports
from lab.s3_server import BUCKET, s3_server

RULE = "no-consumer"
_LANDING = f"s3://{BUCKET}/landing"
_EVERY = 15.0
_SHORTEST, _LONGEST = 45.0, 180.0
"""Life of a queue in seconds; it is longer than a restart, so that the exporter sees each of them."""
_SETTLE = 30.0
_SETTLED_WITHIN = 180.0
_CAUGHT_UP = 60.0
"""Upload lag in seconds that a bucket in use may have: new files come all the time."""
_OTHER_ROWS = ("prometheus", "sessions")
"""Families without a row for each poll: the endpoints are not configured, and sessions have the time of connections."""
# The finding comes with the first reading that shows it; what is measured is what follows.
_QUICK = {"consumers": {"no_consumer_growing": 1, "no_consumer_quiet": 1}, "early": 86400}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--broker", default="4.3", help="version (default 4.3)")
    parser.add_argument(
        "--minutes", type=float, default=30, metavar="N", help="receiver and bucket away for (default 30)"
    )
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
        environ: where its bucket is.
        polled: family -> successful polls that it counted before each stop, over all lives.
        stops, gaps: seconds until it had ended; seconds from the signal until it was ready again.
        codes: exit codes.
    """

    services: Services
    config: Path
    listen: str
    environ: dict[str, str]
    polled: Counter[str] = field(default_factory=Counter)
    stops: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    _service: Service | None = None

    def start(self) -> None:
        """Start it and wait until it is ready."""
        words = ("ackscope", "exporter", "--config", str(self.config))
        self._service = self.services.start_python("exporter", *words, environ=self.environ)
        ready = f"http://{self.listen}/-/ready"
        self._service.wait_until(lambda: answers(ready), "a response from /-/ready", 60)

    def samples(self, name: str) -> dict[str, float]:
        """Return the values of a metric by the last of its labels, or by "" without labels."""
        text = requests.get(f"http://{self.listen}/metrics", timeout=30).text
        found = [it for family in text_string_to_metric_families(text) for it in family.samples if it.name == name]
        return {["", *it.labels.values()][-1]: it.value for it in found}

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
        s3_server() as storage,
    ):
        folder = Path(name)
        link = NetworkLink(urlsplit(storage["AWS_ENDPOINT_URL"]).port or 0)
        link.turn(LinkState.CUT)
        services = Services(folder)
        own, alertmanager = (f"127.0.0.1:{port}" for port in free_ports(2))
        lives = Lives(lab.nodes[0], random.Random(seed))  # noqa: S311  picks lives of queues, guards nothing
        thread = threading.Thread(target=lives.run, name="lives", daemon=True)
        try:
            start_alertmanager(services, folder / "alertmanager", listen=alertmanager, webhook=pager.url)
            linked = {**storage, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{link.port}"}
            exporter = Restarted(services, folder / "ackscope.yml", own, linked)
            _write(exporter.config, lab.nodes[0], own, {"up": up, "away": away}, alertmanager)
            exporter.start()
            thread.start()
            _restart(exporter, args.minutes * 60, args.every)
            lives.stop()
            thread.join(60)
            # What has ended must be absent for this long after a restart.
            time.sleep(_SETTLE + 10)
            lag = exporter.samples("ackscope_landing_upload_lag_seconds")[""]
            spooled = exporter.samples("ackscope_landing_spooled_bytes")[""]
            returned = time.monotonic()
            away.away = False
            link.turn(LinkState.OPEN)
            wait_for(
                lambda: not any(exporter.samples("ackscope_delivery_waiting_findings").values()),
                "everything delivered",
                _SETTLED_WITHIN,
            )
            delivered = time.monotonic() - returned
            wait_for(
                lambda: exporter.samples("ackscope_landing_upload_lag_seconds")[""] < _CAUGHT_UP,
                "everything uploaded",
                _SETTLED_WITHIN,
            )
            uploaded = time.monotonic() - returned
            wait_for(lambda: lives.gone <= _names(pager.alerts(), "resolved"), "resolved alerts", _SETTLED_WITHIN)
            exporter.stop()
            polls = bucket_rows(storage, f"{_LANDING}/poll_samples")
        finally:
            lives.stop()
            services.stop()
            link.close()
    landed = Counter(row["family"] for row in polls if row["success"])
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
        "delivered_seconds": delivered,
        "upload_lag_seconds": lag,
        "spooled_bytes": spooled,
        "uploaded_seconds": uploaded,
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
        "landing": {"directory": _LANDING, "spool": str(folder / "spool")},
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


def lines(document: Document) -> list[str]:
    """The tables."""
    found, counts = document["findings"], ("once", "repeated", "lost", "false")
    polled, landed = document["polled"], document["landed"]
    lost = {family: many - landed[family] for family, many in polled.items() if many > landed[family]}
    delivered, uploaded, gap, longest = (
        document[name] for name in ("delivered_seconds", "uploaded_seconds", "gap_seconds", "gap_longest")
    )
    broker = f"RabbitMQ {document['broker']}, {document['minutes']:g} minutes, seed {document['seed']}"
    return [
        f"{broker}: {found['ended']} findings began and ended, {found['last']} last",
        "",
        *table(
            ("receiver", *counts),
            [(name, *(str(each[kind]) for kind in counts)) for name, each in document["receivers"].items()],
        ),
        "",
        f"to the receiver that was away: {document['messages_after']} messages, {delivered:.1f} s after its return",
        f"restarts: {document['restarts']}; exit codes: {document['exit_codes']}",
        f"from SIGTERM until ready again: median {gap:.1f} s, longest {longest:.1f} s",
        f"from SIGTERM until it has ended: median {document['stop_seconds']:.1f} s",
        f"waiting for the bucket: {document['spooled_bytes'] / MB:.1f} MB, {document['upload_lag_seconds']:.0f} s old",
        f"in the bucket: {uploaded:.1f} s after its return",
        f"polls counted before the stops: {sum(polled.values())}; in the bucket: {sum(landed.values())}",
        f"families with fewer polls in the bucket: {lost or 'none'}",
    ]


BENCH = Bench(
    name="restarts",
    shows="notifications and landing rows while the exporter is restarted, and a receiver and the bucket are away",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--minutes", "4", "--every", "40"),
    room="exporter",
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
