import logging
from dataclasses import replace

import pyarrow.dataset as ds
import pytest

from ackscope.clock import Instant
from ackscope.snapshot import Alarm, Channel, Consumer, HealthCheck, Queue
from diagnosis.thresholds import Thresholds
from exporter.landing.settings import LandingSettings
from exporter.landing.sink import LandingSink
from exporter.probes_host.metrics import ProbeMetrics
from exporter.runtime.ingest import Ingest
from exporter.runtime.state import StateStore
from exporter.settings import ExporterSettings
from probes.ipc import RecordBatch
from tests.unit.exporter.made import NOW, SetClock, Verdicts, burst, message, outcome, part, small, step

PROBE_QUEUE = Queue(vhost="/", name="ackscope.probe.confirm.quorum", type="quorum", leader="rabbit@two")


class Room:
    """An ingest with everything that it feeds."""

    def __init__(self, folder, **settings):
        self.clock, self.state, self.metrics = SetClock(), StateStore(["shop"]), ProbeMetrics()
        shop = {"shop": {"management": {"url": "http://host"}}}
        checked = ExporterSettings.model_validate({"clusters": shop, **settings})
        lander = LandingSink(folder, checked.landing, checked.thresholds.own_prefixes, self.clock)
        self.folder, self.landing = folder, lander.writer
        self.intake = Ingest(checked, self.state, self.metrics, lander, self.clock)

    def landed(self):
        """Return the rows written since the start by table; waiting rows are written first."""
        self.landing.flush()
        return {table: rows for table, rows in self.landing.counts().rows.items() if rows}

    @property
    def known(self):
        """What is known of the cluster."""
        return self.state.clusters()["shop"]


@pytest.fixture
def room(tmp_path):
    """An intake with its defaults."""
    return Room(tmp_path)


def test_a_snapshot_is_known_judged_and_landed(room):
    """Rows of each kind, and a verdict in which every rule was asked."""
    room.intake.on_snapshot(small())
    landed = room.landed()

    assert small() == room.known.snapshot
    assert "no-consumer" in room.known.verdict.checked
    assert (2, 2, 1, 1, 7) == tuple(
        landed[f"{kind}_samples"] for kind in ("queue", "channel", "consumer", "node", "poll")
    )


def test_a_poll_that_read_no_queues_lands_none(room):
    """The reading before is shown with its age, and is not a second sample."""
    room.intake.on_snapshot(small())
    failed = replace(small().queues, error="timed out")
    room.intake.on_snapshot(replace(small(), queues=failed))

    assert 2 == room.landed()["queue_samples"]
    assert 8 == room.landed()["poll_samples"]
    assert "timed out" == room.known.snapshot.queues.error


def test_what_became_of_a_finding_is_landed(room):
    """There at the first look, and ended."""
    alarm = HealthCheck(name="alarms", ok=False, alarms=(Alarm(node="rabbit@one", resource="memory"),))
    room.intake.on_snapshot(small(health=part((alarm,))))
    room.clock.mono += Thresholds().hold + 1
    room.intake.on_snapshot(small())
    room.landing.flush()
    rows = ds.dataset(room.folder / "finding_events", partitioning="hive").to_table().to_pylist()

    assert ["found", "ended"] == [row["event"] for row in rows if row["rule"] == "memory-alarm"]


BROKEN = {
    "channels": part((Channel(name="c1", messages_unacked="many"),)),
    "consumers": part((Consumer(tag="t", vhost="/", queue=None),)),
    "nodes": part(7),
}


@pytest.mark.parametrize("family", BROKEN)
def test_rows_that_cannot_be_made_cost_only_themselves(room, caplog, monkeypatch, family):
    """The failure is counted each time and logged once; other tables get their rows, and later this one too."""
    monkeypatch.setattr("exporter.runtime.ingest.diagnose", lambda *_: Verdicts().of("shop"))
    table = f"{family.removesuffix('s')}_samples"
    for seconds in (0, 20):
        room.intake.on_snapshot(read_at(seconds, **{family: BROKEN[family]}))
    broken = room.landed()
    room.intake.on_snapshot(read_at(40))

    assert {table: 2} == room.landing.counts().defects
    assert table not in broken
    assert {"poll_samples", "queue_samples", "channel_samples", "consumer_samples", "node_samples"} - {table} <= set(
        broken
    )
    assert room.landed()[table] > 0
    logged = [(it.msg["event"], it.msg["table"]) for it in caplog.records if "table" in it.msg]
    assert [("rows cannot be created; logged once, then counted", table)] == logged


def read_at(seconds, **parts):
    """A snapshot of which every family was read at that moment."""
    at = Instant(wall=NOW.wall + seconds, mono=NOW.mono + seconds)
    whole = small(**parts)
    return replace(whole, taken=at, **{family: replace(it, at=at) for family, it in whole.parts.items() if it.at})


def test_rows_that_were_lost_are_made_up_for(tmp_path):
    """Once the disk works again, all queues are landed again, so that readers do not continue from lost rows."""
    room = Room(tmp_path / "landing", landing={"buffer_rows": 1})
    room.folder.write_text("in the way")
    room.intake.on_snapshot(read_at(0))
    room.landing.flush()
    room.folder.unlink()
    room.landing.apply(LandingSettings())
    for seconds in (5, 10, 15):
        room.intake.on_snapshot(read_at(seconds))
        room.landing.flush()
    rows = ds.dataset(room.folder / "queue_samples", partitioning="hive").to_table().to_pylist()

    assert 2 == len(rows)
    assert 1 == len({row["at"] for row in rows})


def test_settings_that_are_read_again_are_applied(room):
    """Caps and bounds change; what was landed before stays known."""
    room.intake.on_snapshot(read_at(0))
    shop = {"shop": {"management": {"url": "http://host"}}}
    room.intake.apply(ExporterSettings.model_validate({"clusters": shop, "landing": {"max_channels": 0}}))
    before = room.landed()
    room.intake.on_snapshot(read_at(5))
    after = room.landed()

    assert (2, 2) == (before["queue_samples"], after["queue_samples"])
    assert 2 + 2 == after["channel_samples"]
    assert {("channel_samples", "cap"): 2} == room.landing.counts().dropped


def test_an_alarm_becomes_a_finding(room):
    """The whole path from the broker's answer to the diagnosis works."""
    alarm = Alarm(node="rabbit@one", resource="memory")
    room.intake.on_snapshot(small(health=part((HealthCheck(name="alarms", ok=False, alarms=(alarm,)),))))

    assert "memory-alarm" in [finding.rule for finding in room.known.verdict.findings]


def test_a_defect_of_diagnosis_keeps_the_verdict_before(room, caplog):
    """The error is counted and logged; the snapshot is still published."""
    room.intake.on_snapshot(small())
    before = room.known.verdict
    room.clock.mono += 5
    broken = small(health=part((None,)))
    room.intake.on_snapshot(broken)

    assert (before, 1) == (room.known.verdict, room.known.diagnosis_errors)
    assert "diagnosis failed; the previous result stays" in caplog.text
    assert broken == room.known.snapshot


def test_a_batch_is_placed_counted_known_and_landed(room):
    """Messages and bursts get their node from the broker's answer."""
    room.intake.on_snapshot(small(queues=part((PROBE_QUEUE,))))
    batch = RecordBatch("shop", messages=[message(node="")], bursts=[burst(node="")], outcomes=[outcome()])
    room.intake.on_batch(batch)
    labels = {"cluster": "shop", "probe": "confirm", "stream": "quorum", "queue_type": "quorum", "node": "rabbit@two"}

    assert 1 == room.metrics.registry.get_sample_value("ackscope_confirm_batch_messages_count", labels)
    assert [outcome()] == room.known.latest_outcomes(room.clock.now())
    assert (1, 1) == (room.landed()["probe_messages"], room.landed()["ack_bursts"])


@pytest.mark.parametrize("jump", [7200.0, -7200.0])
def test_a_summary_is_as_old_as_its_arrival_if_the_clock_is_set(room, jump):
    """If the clock is set back by hours, the last words of an ended probe process do not stay fresh for as long."""
    room.intake.on_batch(RecordBatch("shop", outcomes=[outcome()]))
    room.clock.mono, room.clock.jumped = room.clock.mono + 40, jump
    now = room.clock.now()
    (seen,) = room.known.latest_outcomes(now)

    assert 40.0 == now.wall - seen.at


def test_steps_are_placed_counted_and_landed(room):
    """A step that needs a queue is where the queue is; one without stays where it says it is."""
    queue = replace(PROBE_QUEUE, name="ackscope.probe.redelivery.quorum")
    room.intake.on_snapshot(small(queues=part((queue,))))
    before = room.landing.counts().buffered
    requeue = step(probe="redelivery", stream="quorum", step="requeue", node="")
    room.intake.on_batch(
        RecordBatch("shop", steps=[requeue, step(probe="handshake", stream="handshake", step="tcp", node="")])
    )
    steps = {
        (sample.labels["step"], sample.labels["node"]): sample.value
        for family in room.metrics.registry.collect()
        for sample in family.samples
        if sample.name == "ackscope_probe_steps_total" and sample.labels["outcome"] == "ok"
    }

    assert {("requeue", "rabbit@two"): 1, ("tcp", ""): 1} == steps
    assert before + 2 == room.landing.counts().buffered


def test_streams_of_a_cluster_with_named_nodes_are_distinguished(tmp_path):
    """Streams to one node have that node as label, others have none; otherwise both would share a series."""
    amqp = {"url": "amqp://host", "nodes": {"rabbit@two": "amqp://two"}}
    room = Room(tmp_path, clusters={"shop": {"management": {"url": "http://host"}, "amqp": amqp}})
    own = replace(PROBE_QUEUE, name=f"{PROBE_QUEUE.name}@rabbit@two")
    delivery = replace(PROBE_QUEUE, name="ackscope.probe.delivery.classic")
    room.intake.on_snapshot(small(queues=part((PROBE_QUEUE, own, delivery))))
    streams = [
        outcome(probe="confirm", stream="quorum", queue=PROBE_QUEUE.name),
        outcome(probe="confirm", stream="quorum", queue=own.name, node="rabbit@two"),
        outcome(),
    ]
    room.intake.on_batch(RecordBatch("shop", outcomes=streams))
    seen = [(it.probe, it.node) for it in room.known.latest_outcomes(room.clock.now())]

    assert [("confirm", ""), ("confirm", "rabbit@two"), ("delivery", "rabbit@two")] == seen


def test_a_cap_that_bites_is_reported_once(tmp_path, caplog):
    """With the setting that raises it."""
    room = Room(tmp_path, metrics={"max_queues": 1})
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            room.intake.on_snapshot(small())
    logged = [record.msg for record in caplog.records]

    assert 1 == len(logged)
    assert "queues beyond metrics.max_queues have no series of their own" == logged[0]["event"]
    assert ("shop", 2, 1) == (logged[0]["cluster"], logged[0]["count"], logged[0]["limit"])


def test_the_age_of_queues_is_known_after_each_snapshot(room, monkeypatch):
    """A defect costs one poll of ages, and nothing else."""
    room.intake.on_snapshot(small())
    queues = {queue.key for queue in small().queues.value}
    assert queues == set(room.known.queue_ages)

    def fail(*_):
        raise ValueError

    later = replace(NOW, mono=NOW.mono + 5)
    monkeypatch.setattr("exporter.runtime.ingest.QueueAges.add", fail)
    room.intake.on_snapshot(replace(small(), queues=replace(small().queues, at=later)))

    assert {} == room.known.queue_ages
    assert "no-consumer" in room.known.verdict.checked


def test_a_replaced_broker_has_no_ages_of_the_one_before(room):
    """Its queues have a new history."""
    room.intake.on_snapshot(small())
    room.state.set_clusters(["shop"], reset=["shop"])
    assert {} == room.known.queue_ages

    room.intake.on_snapshot(small())
    assert room.known.queue_ages
