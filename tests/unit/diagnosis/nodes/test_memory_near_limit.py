import pytest

from ackscope.snapshot import Alarm, HealthCheck
from ackscope.topology import NodeMemory
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.nodes.machines import GB, frame
from tests.unit.diagnosis.pictures import NODE, film, found, look, only, queue


def test_it_is_reported_early_and_becomes_a_warning_after_five_minutes():
    """Garbage collection may end it sooner, and the finding gives the limit."""
    early = only(look(film(frame(mem_used=9 * GB), until=20)))

    assert ("memory-near-limit", "info", "early") == (early.rule, early.severity, early.certainty)
    assert (0.9, 300.0) == (early.facts["used_share"], early.facts["warning_after_seconds"])
    assert [("memory-near-limit", "warning", NODE)] == found(look(film(frame(mem_used=9 * GB), until=320)))


def test_garbage_collection_is_not_reported():
    """Memory rises and falls, and is below the limit every half minute."""
    saw = film(frame(mem_used=lambda t: int((5 + (t % 30) / 30 * 4.5) * GB)), until=1800, every=10)

    assert "warning" not in [severity for _, severity, _ in found(look(saw))]


def test_peaks_that_rise_towards_the_limit_are_a_warning():
    """Memory rises and falls with higher peaks each time, over 15 min."""
    rising = film(frame(mem_used=lambda t: int((2 + 5 * t / 1800 + (t % 120) / 240) * GB)), until=1800, every=10)
    finding = only(look(rising))

    assert ("memory-near-limit", "warning") == (finding.rule, finding.severity.value)
    assert 900 < finding.facts["eta_seconds"] < 1200


def test_a_rise_that_takes_hours_is_not_reported():
    """At that rate the limit is three hours away."""
    slow = film(frame(mem_used=lambda t: int((6 + t / 3600) * GB)), until=1800, every=10)

    assert [] == found(look(slow))


def test_a_single_diagnosis_reports_it():
    """Two readings six seconds apart."""
    window = film(frame(mem_used=9 * GB), until=6, every=6)

    assert [("memory-near-limit", "warning", NODE)] == found(look(window, thresholds=Thresholds.as_if_lasting()))


def test_over_the_limit_it_is_the_alarm():
    """The alarm has a rule of its own."""
    alarm = HealthCheck(name="alarms", ok=False, reason="x", alarms=(Alarm(node=NODE, resource="memory"),))
    result = look(film(lambda t: {**frame(mem_used=11 * GB)(t), "health": (alarm,)}, until=320))

    assert [("memory-alarm", "critical", NODE)] == found(result)


def test_what_uses_the_memory_is_named():
    """The largest part of the breakdown, and the largest queues."""
    use = NodeMemory(node=NODE, parts={"quorum_queue_procs": 6 * GB, "code": 2 * GB}, rss=9 * GB, strategy="rss")
    parts = {"memory": (use,), "queues": (queue("large", memory=5 * GB, messages_ready=3),)}
    finding = only(look(film(lambda t: {**frame(mem_used=9 * GB)(t), **parts}, until=30)))

    assert "queues" == finding.facts["dominant_group"]
    assert [("queues", 6 * GB, 9 * GB), ("base", 2 * GB, 9 * GB)] == [
        (each.facts["memory_group_name"], each.value, each.facts["total_bytes"])
        for each in finding.evidence
        if each.key == "memory_part"
    ]
    assert ["large"] == [queue.name for queue in finding.involved.queues]


@pytest.mark.parametrize("fields", [{"mem_used": None}, {"mem_limit": None}, {"mem_limit": 0}, {"running": False}])
def test_absent_values_prove_nothing(fields):
    """Absent is not zero."""
    result = look(film(frame(**{"mem_used": 9 * GB, **fields}), until=320))

    assert "memory-near-limit" not in [finding.rule for finding in result.findings]
