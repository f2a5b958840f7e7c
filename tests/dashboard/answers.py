"""Responses of a fake exporter, built from the kernel's dataclasses, and an HTTP server that serves them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl

import orjson

from ackscope.baselines import HOUR_OF_WEEK
from ackscope.clock import SystemClock
from ackscope.findings import Involved, Severity, Subject, source
from ackscope.records import ProbeOutcome, ProbeState, ProbeStep, Quantiles
from ackscope.reports import EndedReport, EvidenceReport, FindingReport, InconclusiveReport, Step, as_document, runbook
from ackscope.snapshot import FAMILIES, Alarm, HealthCheck, Node, Overview, Part, Queue, Snapshot
from dashboard.data.model import BacklogTrend, ConfirmLayer, MetricSeries, SubjectSeries, UsualBand, VitalMetric
from diagnosis.thresholds import Thresholds
from diagnosis.window import Window
from exporter.api import documents as api
from exporter.api.columns import columns
from exporter.api.object_series import object_series
from exporter.api.queue_page import queue_document
from exporter.api.runbooks import runbooks

GIB = 1024**3
CHECKED = ("no-consumer", "stuck-consumer", "requeue-loop", "pub-nacked-overflow", "memory-alarm", "disk-alarm")
CLOSE = "curl -u USER -X DELETE http://MANAGEMENT_HOST:15672/api/connections/10.1.4.17%3A51244"
HOSTILE = (
    "`x` <script>window.hurt=1</script> <img src=x onerror='window.hurt=1'> | :red[boom] :smile: $x^2$ -> "
    ":material/bolt: :streamlit: :gray-badge[x] [a](javascript:window.hurt=1) **bold** \u202egnp.exe"
)
"""A queue name that means something to every kind of markup, and turns the direction of the text around."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """One cluster in the exporter's responses."""

    name: str = "shop"
    broker: str | None = "3.10.8"
    age: float | None = 3.0
    findings: Sequence[FindingReport] = ()
    inconclusive: Sequence[InconclusiveReport] = ()
    checked: Sequence[str] = CHECKED
    ended: Sequence[EndedReport] = ()
    probes: Sequence[ProbeOutcome] = ()
    layers: Sequence[ConfirmLayer] = ()
    probes_up: bool = True
    probes_age: float = 1.0
    nodes: Sequence[Node] = ()
    alarms: Sequence[Alarm] = ()
    error: str | None = None
    signs: Sequence[VitalMetric] = ()
    subjects: Sequence[SubjectSeries] = ()
    series: Sequence[MetricSeries] = ()
    trends: Sequence[BacklogTrend] = ()
    overview: Overview = field(
        default_factory=lambda: Overview(
            rabbitmq_version="3.10.8",
            messages_ready=12_845,
            messages_unacked=310,
            queues=214,
            consumers=388,
            connections=96,
        )
    )


def line(name: str, unit: str, *values: float | None) -> MetricSeries:
    """A series with one value per minute up to now."""
    points = tuple((60.0 * back, value) for back, value in zip(reversed(range(len(values))), values, strict=True))
    return MetricSeries(name=name, unit=unit, value=values[-1], line=points)


def sign(
    name: str, unit: str, *values: float | None, band: tuple[float, float] | None = None, **more: Any
) -> VitalMetric:
    """A vital metric, with or without a baseline band."""
    reported = line(name, unit, *values)
    usual = None
    if band is not None and reported.value is not None:
        usual = UsualBand(
            value=reported.value, low=band[0], middle=sum(band) / 2, high=band[1], scope=HOUR_OF_WEEK, values=6
        )
    return VitalMetric(name=name, unit=unit, value=reported.value, line=reported.line, **{"usual": usual, **more})


def signs() -> tuple[VitalMetric, ...]:
    """All seven vital metrics: one above its band, one below, and confirms without a band."""
    return (
        sign("publish", "rate", 150, 158, 162, 161, band=(120, 180)),
        sign("confirm", "rate", 150, 157, 162, 160),
        sign("deliver", "rate", 150, 150, 12, 0, band=(120, 180)),
        sign("ack", "rate", 150, 150, 10, 0, band=(120, 180)),
        sign("redeliver", "rate", 0, None, 0.4, 0.5, band=(0, 2)),
        sign("ready", "messages", 20, 700, 6_000, 12_845, band=(0, 300)),
        sign("unacked", "messages", 300, 310, 310, 310, band=(0, 400)),
    )


def ago(**span: float) -> str:
    """A time in the past, as findings format it."""
    moment = datetime.fromtimestamp(SystemClock().now().wall, UTC) - timedelta(**span)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def probe(queue_type: str = "classic", **changes: Any) -> ProbeOutcome:
    """A healthy confirm probe."""
    healthy = ProbeOutcome(
        probe="confirm",
        stream=queue_type,
        queue_type=queue_type,
        vhost="/",
        queue=f"ackscope.probe.confirm.{queue_type}",
        node="rabbit@shop-1",
        at=SystemClock().now().wall,
        state=ProbeState.RUNNING,
        success=True,
        rate=20.0,
        outcomes={"acked": 72_000, "nacked": 0},
        confirm=Quantiles(count=1200, p50=0.00112, p90=0.002, p99=0.0041, max=0.0187),
        response=Quantiles(count=1200, p50=0.0012, p90=0.0021, p99=0.0042, max=0.0191),
        send_delay=Quantiles(count=1200, p50=0.00004, p90=0.0001, p99=0.00031, max=0.0011),
        burst_messages=Quantiles(count=400, p50=3, p90=5, p99=9, max=14),
        burst_interval=Quantiles(count=400, p50=0.05, p90=0.06, p99=0.1, max=0.3),
    )
    return replace(healthy, **changes)


def timing(name: str, *steps: str, stream: str = "", **changes: Any) -> ProbeOutcome:
    """A probe that times steps and sends no counted messages."""
    timed = {
        step: ProbeStep(attempts=40, seconds=Quantiles(count=2, p50=0.0003, p90=0.0004, p99=0.0005, max=0.0006))
        for step in steps
    }
    silent = {"outcomes": {"acked": 0, "nacked": 0}, "send_delay": Quantiles(), "burst_messages": Quantiles()}
    reported = {
        "probe": name,
        "stream": stream or name,
        "confirm": Quantiles(),
        "loop_lag": Quantiles(count=9, p50=0.0001, p90=0.0001, p99=0.0002, max=0.0003),
        "steps": timed,
        **silent,
    }
    return probe(stream or "none", **{**reported, **changes})


def nacked(**changes: Any) -> ProbeOutcome:
    """The nack probe, whose messages are refused as expected."""
    return probe("classic", **{"probe": "nack", "stream": "nack", "outcomes": {"acked": 0, "nacked": 500}, **changes})


def all_probes() -> tuple[ProbeOutcome, ...]:
    """All streams of all probes, healthy."""
    return (
        *(
            probe(queue_type, stream=stream)
            for stream, queue_type in (
                ("unroutable", "none"),
                ("transient", "classic"),
                ("classic", "classic"),
                ("classic-large", "classic"),
                ("quorum", "quorum"),
                ("stream", "stream"),
            )
        ),
        *(probe(kind, probe="delivery", delivery=Quantiles(count=9, p50=0.002)) for kind in ("classic", "quorum")),
        timing("handshake", "dns", "tcp", "open", "channel"),
        timing("rtt", "declare"),
        *(timing("redelivery", "requeue", "dead-letter", stream=kind) for kind in ("classic", "quorum")),
        *(timing("prefetch", "fill", stream=kind, prefetch=5) for kind in ("classic", "quorum")),
        nacked(),
    )


def steps(*several: Step) -> dict[str, Any]:
    """Steps of a finding, in both of their forms."""
    return {"steps": several, "next_steps": tuple(map(str, several))}


def stuck(queue: str = "orders.invoices", vhost: str = "/") -> FindingReport:
    """A stuck consumer, as diagnosis would tell it."""
    return FindingReport(
        rule="stuck-consumer",
        severity=Severity.CRITICAL,
        subject=Subject(kind="queue", name=queue, vhost=vhost, node="rabbit@shop-2"),
        since=ago(minutes=29),
        summary=f"Queue {queue!r} ({vhost!r}) stands still: its 4 consumers hold 200 messages and acknowledged none, "
        "seen over 29 min; 12418 messages wait",
        cause="The client is connected and holds all that its prefetch allows, but acknowledges nothing: its handler "
        "hangs, or never acknowledges.",
        evidence=(
            EvidenceReport(
                what="acknowledged",
                value="0 in 29 min",
                expected="more than 0",
                source="/api/queues message_stats.ack",
                fields=source("/api/queues", "message_stats.ack"),
            ),
            EvidenceReport(
                what="waiting",
                value="12418 messages",
                source="/api/queues messages_ready",
                fields=source("/api/queues", "messages_ready"),
            ),
            EvidenceReport(
                what="consumer 'invoice-worker' at 10.1.4.17:51244",
                value="holds 50 with prefetch 50",
                expected="acknowledges",
                source="/api/consumers, /api/channels messages_unacknowledged",
            ),
        ),
        **steps(
            Step(
                text="List the consumers of the queue",
                command="rabbitmqctl list_consumers -p / | grep -F -- orders.invoices",
            ),
            Step(text="Take a thread dump of 'invoice-worker' on 10.1.4.17, then restart it"),
            Step(text="Close its connection to release the messages now", command=CLOSE),
        ),
        runbook=runbook("stuck-consumer"),
        involved=Involved(clients=("invoice-worker",)),
    )


def overflow() -> FindingReport:
    """A finding about rejected publishes."""
    return FindingReport(
        rule="pub-nacked-overflow",
        severity=Severity.WARNING,
        subject=Subject(kind="queue", name="emails.outbound", vhost="marketing"),
        since=ago(minutes=4),
        summary="Publishers to queue 'emails.outbound' ('marketing') get nacks: it is full at 10000 messages",
        cause="max-length is reached and overflow is reject-publish.",
        evidence=(
            EvidenceReport(what="length", value="10000", expected="below max-length 10000", source="/api/queues"),
        ),
        **steps(
            Step(text="List the queues", command="rabbitmqctl list_queues -p marketing name messages policy"),
        ),
        runbook=runbook("pub-nacked-overflow"),
    )


NODES = (
    Node(
        name="rabbit@shop-1",
        running=True,
        mem_used=GIB,
        mem_limit=6 * GIB,
        mem_alarm=False,
        disk_free=38 * GIB,
        disk_free_limit=2 * GIB,
        disk_free_alarm=False,
    ),
    Node(
        name="rabbit@shop-2",
        running=True,
        mem_used=5 * GIB,
        mem_limit=6 * GIB,
        mem_alarm=False,
        disk_free=30 * GIB,
        disk_free_limit=2 * GIB,
        disk_free_alarm=False,
    ),
    Node(name="rabbit@shop-3", running=False),
)


def healthy(name: str = "shop", **changes: Any) -> Cluster:
    """A cluster without findings."""
    well = Cluster(
        name=name,
        nodes=NODES[:2],
        probes=(probe("classic"), probe("quorum", node="rabbit@shop-2")),
        signs=(sign("publish", "rate", 150, 158, band=(120, 180)), sign("ready", "messages", 12, 3, band=(0, 300))),
    )
    return replace(well, **changes)


def sick(name: str = "shop", **changes: Any) -> Cluster:
    """A cluster with a stuck consumer, a full queue, a stopped node, and a probe that cannot measure."""
    gap = InconclusiveReport(
        rule="consumer-ack-timeout",
        because="3.10 does not say how long a delivery may take",
        needs="Upgrade to 3.12",
        permanent=True,
    )
    blind = InconclusiveReport(
        rule="memory-alarm", because="node figures are 40 s old", needs="look at the management plugin"
    )
    lines = (line("ready", "messages", 20, 700, 6_000, 12_418), line("ack", "rate", 40, 3, 0, 0))
    ill = Cluster(
        name=name,
        findings=(stuck(), overflow()),
        ended=(ended(seconds_ago=180, rule="no-consumer"), ended(seconds_ago=1300, severity=Severity.WARNING)),
        inconclusive=(gap, blind),
        nodes=NODES,
        signs=signs(),
        subjects=(
            SubjectSeries(
                kind="queue",
                vhost="/",
                name="orders.invoices",
                lines=lines,
            ),
        ),
        series=lines,
        probes=(
            probe("classic", doubtful="the probe's own loop was 120 ms late"),
            probe("quorum", node="rabbit@shop-2", outcomes={"acked": 71_200, "nacked": 12, "lost": 3}),
            probe("quorum", node="rabbit@shop-3", state=ProbeState.FAILED, reason="connection refused at shop-3:5672"),
        ),
    )
    return replace(ill, **changes)


def ended(*, seconds_ago: float, **changes: Any) -> EndedReport:
    """A finding that ended, after seven minutes."""
    values = {name: getattr(stuck(), name) for name in ("rule", "severity", "subject", "runbook")}
    times = {"since": ago(seconds=seconds_ago + 420), "ended_at": ago(seconds=seconds_ago)}
    return EndedReport(**{**values, **times, "ended_seconds": seconds_ago, **changes})


def hostile(name: str = "shop") -> Cluster:
    """A cluster whose every name means something to a markup."""
    item = EvidenceReport(what=HOSTILE, value=HOSTILE, expected=HOSTILE, source=HOSTILE)
    todo = steps(Step(text=HOSTILE), Step(text=HOSTILE, command=f"curl {HOSTILE}"))
    finding = replace(stuck(HOSTILE, HOSTILE), cause=HOSTILE, evidence=(item,), **todo)
    return Cluster(
        name=name,
        broker=HOSTILE,
        findings=(finding, replace(finding, rule=HOSTILE), finding, finding),
        inconclusive=(InconclusiveReport(rule=HOSTILE, because=HOSTILE, needs=HOSTILE),),
        checked=(HOSTILE,),
        ended=(ended(seconds_ago=60, rule=HOSTILE, subject=Subject(kind="queue", name=HOSTILE, vhost=HOSTILE)),),
        nodes=(replace(NODES[0], name=HOSTILE, mem_alarm=True), Node(name=HOSTILE, running=False)),
        probes=(probe(HOSTILE, node=HOSTILE, state=ProbeState.FAILED, reason=HOSTILE, doubtful=HOSTILE),),
        error=HOSTILE,
        signs=signs(),
        subjects=(SubjectSeries(kind="queue", vhost=HOSTILE, name=HOSTILE, lines=(line("ready", "messages", 1, 2),)),),
    )


def documents(*clusters: Cluster) -> dict[str, bytes]:
    """The four JSON documents of the exporter, by path."""
    now = SystemClock().now()
    head: dict[str, Any] = {"now": now.iso()}
    findings = [
        {
            "cluster": item.name,
            "broker": item.broker,
            "age_seconds": item.age,
            "findings": [as_document(finding) for finding in item.findings],
            "cannot_tell": [asdict(gap) for gap in item.inconclusive],
            "checked": list(item.checked),
            "ended": [asdict(each) for each in item.ended],
        }
        for item in clusters
    ]
    probes = [
        {
            "cluster": item.name,
            "process": {"up": item.probes_up, "restarts": 0 if item.probes_up else 3, "age_seconds": item.probes_age},
            "probes": [asdict(replace(outcome, at=now.wall - item.probes_age)) for outcome in item.probes],
            "layers": [asdict(layer) for layer in item.layers],
        }
        for item in clusters
    ]
    snapshots = [_snapshot(item) for item in clusters if item.age is not None]
    vitals = [
        {
            "cluster": item.name,
            "age_seconds": item.age,
            "signs": [asdict(reported) for reported in item.signs if item.age is not None],
            "subjects": [asdict(reported) for reported in item.subjects],
            "trends": [asdict(reported) for reported in item.trends],
        }
        for item in clusters
    ]
    reported = {"findings": findings, "probes": probes, "snapshot": snapshots, "vitals": vitals}
    head["triage_writable"] = True
    return {f"/api/v1/{name}": orjson.dumps({**head, "clusters": reported[name]}) for name in reported}


def _snapshot(item: Cluster) -> dict[str, Any]:
    now = SystemClock().now()
    check = HealthCheck(name="alarms", ok=not item.alarms, alarms=tuple(item.alarms))
    taken = Snapshot(
        cluster=item.name,
        taken=now,
        overview=Part(value=item.overview, at=now, error=item.error),
        nodes=Part(value=tuple(item.nodes), at=now),
        health=Part(value=(check,), at=now),
        queues=Part(value=(Queue(vhost="/", name="q", arguments={"x-max-length": 1}),), at=now),
    )
    return {**asdict(taken), "ages": dict.fromkeys(FAMILIES, item.age)}


def about_objects(lists: Mapping[str, Window], path: str, query: Mapping[str, str]) -> tuple[int, bytes]:
    """Response of the exporter's own code to `/api/v1/queue` and `/api/v1/trends`."""
    window, now = lists.get(query["cluster"]) or Window.empty(query["cluster"]), SystemClock().now()
    if path == "/api/v1/queue":
        return 200, api.as_json(queue_document(window, query["vhost"], query["queue"], now, None, Thresholds()))
    return 200, api.as_json(object_series(window, query["list"], query["objects"], now, query.get("lines")))


def listed(lists: Mapping[str, Window], query: Mapping[str, str]) -> tuple[int, bytes]:
    """Response of the exporter's own code to `/api/v1/columns`, for the clusters of these windows."""
    window = lists.get(query["cluster"]) or Window.empty(query["cluster"])
    return 200, api.as_json(columns(window, query["list"], query["columns"], SystemClock().now()))


def runbook_answer(rule: str) -> tuple[int, bytes]:
    """The real runbook of a rule."""
    text = runbooks().get(rule)
    return (404, b"") if text is None else (200, text.encode())


class Exporter:
    """A fake exporter; set `clusters`, `lists`, or `raw` by path, to change its responses."""

    def __init__(self, *clusters: Cluster) -> None:
        self.clusters: tuple[Cluster, ...] = clusters
        self.raw: dict[str, tuple[int, bytes]] = {}
        self.asked: list[str] = []
        self.posted: list[dict[str, Any]] = []
        self.lists: dict[str, Window] = {}
        self.url = ""

    def answer(self, path: str, query: str = "") -> tuple[int, bytes]:
        """Status and body for a path."""
        self.asked.append(path)
        if path in self.raw:
            return self.raw[path]
        if path == "/api/v1/columns":
            return listed(self.lists, dict(parse_qsl(query)))
        if path == "/api/v1/series":
            name = dict(parse_qsl(query))["cluster"]
            lines = next(item.series for item in self.clusters if item.name == name)
            return 200, orjson.dumps({"lines": [asdict(one) for one in lines]})
        if path in {"/api/v1/queue", "/api/v1/trends"}:
            return about_objects(self.lists, path, dict(parse_qsl(query)))
        if path == "/runbook":
            return runbook_answer(dict(parse_qsl(query)).get("rule", ""))
        body = documents(*self.clusters).get(path)
        return (404, b"") if body is None else (200, body)


@contextmanager
def serving(*clusters: Cluster, port: int = 0) -> Iterator[Exporter]:
    """Serve on loopback until the block ends."""
    reported = Exporter(*clusters)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            status, body = reported.answer(path, query)
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            length = int(self.headers.get("content-length", "0"))
            reported.posted.append(orjson.loads(self.rfile.read(length)))
            status, body = reported.raw.get(self.path, (200, b"{}"))
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            """Log nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        allow_reuse_address = True

    with Server(("127.0.0.1", port), Handler) as server:
        reported.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield reported
        finally:
            server.shutdown()
            thread.join()
