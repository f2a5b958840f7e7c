from ackscope.baselines import HOUR_OF_WEEK, Band, Baselines, hour_of_week
from ackscope.clock import SystemClock
from ackscope.findings import DiagnosisResult, Evidence, Finding, Inconclusive, Severity, Subject, Suppressed, source
from ackscope.records import Batching, BatchingKind, Quantiles
from ackscope.snapshot import Overview, Part, Queue, Snapshot
from dashboard.data.exporter_client import ExporterClient as Client
from diagnosis.text import Cluster, render_result
from diagnosis.thresholds import Thresholds
from diagnosis.window import Window
from exporter.api import documents as api
from exporter.api.vitals import vitals
from exporter.exposition.live.process import SupervisedProcess
from exporter.runtime.state import ClusterState, ReceivedOutcome
from tests.dashboard import answers
from tests.dashboard.answers import Exporter

FOUND = Finding(
    rule="probe-redelivered",
    severity=Severity.INFO,
    subject=Subject(kind="probe", name="delivery.classic", vhost="/"),
    facts={"stream": "delivery.classic", "redeliveries": 4, "duplicates": 1, "connects": 3, "lost": 2},
    evidence=(Evidence(key="redelivered", source=source("probe delivery.classic", "redeliveries")),),
)


def test_documents_of_the_real_exporter_are_read(exporter: Exporter) -> None:
    """Documents of the exporter's own code come out with the values that went in."""
    now = SystemClock().now()
    batching = Batching(kind=BatchingKind.SYNC, interval=0.2, confidence=0.9, fsync=True, because="slope 0.98")
    # The time of a summary is that of its arrival.
    arrived = now.wall
    outcomes = (
        answers.probe("none", stream="unroutable", queue="", node="", at=arrived),
        answers.probe("quorum", batching=batching, blocked_seconds=3.0, blocked_reason="low on memory", at=arrived),
        answers.timing(
            "prefetch",
            "fill",
            stream="classic",
            prefetch=5,
            unacked=Quantiles(count=9, p50=5.0, max=5.0),
            at=arrived,
        ),
    )
    snapshot = Snapshot(
        cluster="shop",
        taken=now,
        overview=Part(value=Overview(rabbitmq_version="4.3.6", messages_ready=7, churn={"queue_created": 1}), at=now),
        nodes=Part(value=answers.NODES, at=now, gaps={"mem_used": 1}),
        queues=Part(value=(Queue(vhost="/", name="q", messages_ready=0, arguments={"x-max-length": 1}),), at=now),
    )
    verdict = DiagnosisResult(
        cluster="shop",
        at=now.iso(),
        findings=(FOUND,),
        inconclusive=(Inconclusive(rule="memory-alarm", reason="no_counters"),),
        suppressed=(Suppressed(rule="probe-node-differs", subject=FOUND.subject, reason="just_started"),),
        checked=("stuck-consumer",),
    )
    states = {
        "shop": ClusterState(
            window=Window.empty("shop").add(snapshot),
            verdict=verdict,
            outcomes={(it.probe, it.stream, "q"): ReceivedOutcome(at=now, outcome=it) for it in outcomes},
        ),
        "new": ClusterState(window=Window.empty("new")),
    }
    band = Band(low=0.0, middle=5.0, high=9.0, scope=HOUR_OF_WEEK, values=6)
    usual = Baselines(hour_of_week(now.wall), now.wall, {("cluster", "", "", "ready"): band})
    status = SupervisedProcess(up=True, restarts=2, bad_lines=0, age_seconds=0.5)
    documents = {
        "findings": api.findings(states, now),
        "probes": api.probes(states, status, now),
        "snapshot": api.snapshots(states, now),
        "vitals": vitals(states, now, {"shop": usual}.get, Thresholds()),
    }
    exporter.raw = {f"/api/v1/{name}": (200, api.as_json(document)) for name, document in documents.items()}
    live = Client(exporter.url).read()
    feeds = (live.findings, live.probes, live.snapshot, live.vitals)
    found, probes, totals, load = (feed.response.clusters[0] for feed in feeds)

    assert ("shop", "new") == live.clusters
    report = render_result(verdict, Cluster(version=(4, 3)))
    assert ("4.3.6", report.findings, report.checked) == (found.broker, found.findings, found.checked)
    assert (report.inconclusive, report.suppressed) == (found.inconclusive, found.suppressed)
    assert (2, 0.5) == (probes.process.restarts, probes.process.age_seconds)
    assert {(it.probe, it.stream): it for it in outcomes} == {(it.probe, it.stream): it for it in probes.probes}
    assert ("network+channel", 0.00112, "") == (
        probes.layers[0].name,
        probes.layers[0].seconds,
        probes.layers[0].node,
    )
    assert [] == [layer for layer in probes.layers if not layer.because]
    assert (snapshot.overview.value, answers.NODES) == (totals.overview.value, totals.nodes.value)
    assert live.findings.response.clusters[1].age_seconds is None
    assert {"ready": (7.0, ((0.0, 7.0),))} == {
        it.name: (it.value, it.line) for it in load.signs if it.value is not None
    }
    assert (0.0, 9.0, 0.0) == next((it.usual.low, it.usual.high, it.usual.value) for it in load.signs if it.usual)
    assert () == live.vitals.response.clusters[1].signs
