import logging
from dataclasses import replace

import pytest

from ackscope.snapshot import Alarm, HealthCheck, Queue
from exporter.intake import Intake
from exporter.landing.settings import LandingSettings
from exporter.landing.writer import LandingWriter
from exporter.probe_metrics import ProbeMetrics
from exporter.settings import ExporterSettings
from exporter.state import State
from probes.wire import Batch
from tests.unit.exporter.made import SetClock, burst, message, outcome, part, small, step

PROBE_QUEUE = Queue(vhost="/", name="ackscope.probe.confirm.quorum", type="quorum", leader="rabbit@two")


class Room:
    """An intake with everything that it feeds."""

    def __init__(self, folder, **settings):
        self.clock, self.state, self.metrics = SetClock(), State(["shop"]), ProbeMetrics()
        self.landing = LandingWriter(folder, LandingSettings(directory=folder), self.clock)
        shop = {"shop": {"management": {"url": "http://host"}}}
        checked = ExporterSettings.model_validate({"clusters": shop, **settings})
        self.intake = Intake(checked, self.state, self.metrics, self.landing, self.clock)

    @property
    def known(self):
        """What is known of the cluster."""
        return self.state.clusters()["shop"]


@pytest.fixture
def room(tmp_path):
    """An intake with its defaults."""
    return Room(tmp_path)


def test_a_snapshot_is_known_judged_and_landed(room):
    """One sample of each queue, and a verdict in which every rule was asked."""
    room.intake.on_snapshot(small())

    assert small() == room.known.snapshot
    assert "no-consumer" in room.known.verdict.checked
    assert 2 == room.landing.counts().buffered


def test_a_poll_that_read_no_queues_lands_none(room):
    """The reading before is shown with its age, and is not a second sample."""
    room.intake.on_snapshot(small())
    failed = replace(small().queues, error="timed out")
    room.intake.on_snapshot(replace(small(), queues=failed))

    assert 2 == room.landing.counts().buffered
    assert "timed out" == room.known.snapshot.queues.error


def test_an_alarm_becomes_a_finding(room):
    """The way from the broker's word to the verdict is whole."""
    alarm = Alarm(node="rabbit@one", resource="memory")
    room.intake.on_snapshot(small(health=part((HealthCheck(name="alarms", ok=False, alarms=(alarm,)),))))

    assert "memory-alarm" in [finding.rule for finding in room.known.verdict.findings]


def test_a_defect_of_diagnosis_keeps_the_verdict_before(room, caplog):
    """It is counted and told; the snapshot is known all the same."""
    room.intake.on_snapshot(small())
    before = room.known.verdict
    room.clock.mono += 5
    broken = small(health=part((None,)))
    room.intake.on_snapshot(broken)

    assert (before, 1) == (room.known.verdict, room.known.diagnosis_errors)
    assert "diagnosis of cluster shop failed" in caplog.text
    assert broken == room.known.snapshot


def test_a_batch_is_placed_counted_known_and_landed(room):
    """Messages and bursts get their node from the broker's answer."""
    room.intake.on_snapshot(small(queues=part((PROBE_QUEUE,))))
    batch = Batch("shop", messages=[message(node="")], bursts=[burst(node="")], outcomes=[outcome()])
    room.intake.on_batch(batch)
    labels = {"cluster": "shop", "probe": "confirm", "stream": "quorum", "queue_type": "quorum", "node": "rabbit@two"}

    assert 1 == room.metrics.registry.get_sample_value("ackscope_confirm_batch_messages_count", labels)
    assert [outcome()] == room.known.latest_outcomes()
    assert 2 == room.landing.counts().buffered


def test_steps_are_placed_counted_and_landed(room):
    """A step that needs a queue is where the queue is; one without stays where it says it is."""
    queue = replace(PROBE_QUEUE, name="ackscope.probe.redelivery.quorum")
    room.intake.on_snapshot(small(queues=part((queue,))))
    before = room.landing.counts().buffered
    requeue = step(probe="redelivery", stream="quorum", step="requeue", node="")
    room.intake.on_batch(
        Batch("shop", steps=[requeue, step(probe="handshake", stream="handshake", step="tcp", node="")])
    )
    steps = {
        (sample.labels["step"], sample.labels["node"]): sample.value
        for family in room.metrics.registry.collect()
        for sample in family.samples
        if sample.name == "ackscope_probe_steps_total" and sample.labels["outcome"] == "ok"
    }

    assert {("requeue", "rabbit@two"): 1, ("tcp", ""): 1} == steps
    assert before + 2 == room.landing.counts().buffered


def test_streams_of_a_cluster_with_named_nodes_are_told_apart(tmp_path):
    """What is sent to one node is that node's; what may go to any is nobody's: else both would be one series."""
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
    room.intake.on_batch(Batch("shop", outcomes=streams))
    seen = [(it.probe, it.node) for it in room.known.latest_outcomes()]

    assert [("confirm", ""), ("confirm", "rabbit@two"), ("delivery", "rabbit@two")] == seen


def test_a_cap_that_bites_is_told_once(tmp_path, caplog):
    """With the setting that raises it."""
    room = Room(tmp_path, metrics={"max_queues": 1})
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            room.intake.on_snapshot(small())
    told = [record.getMessage() for record in caplog.records]

    assert 1 == len(told)
    assert told[0].startswith("cluster shop has 2 queues; 1 get series of their own")
    assert "metrics.max_queues" in told[0]
