import pytest

from ackscope.records import ProbeState
from ackscope.snapshot import Alarm, HealthCheck, Part
from tests.unit.diagnosis.nodes.machines import GB, frame, node, outcome
from tests.unit.diagnosis.pictures import NODE, connection, film, found, look, only, queue, told

DISK = HealthCheck(name="alarms", ok=False, reason="alarms", alarms=(Alarm(node=NODE, resource="disk"),))
MEMORY = HealthCheck(name="alarms", ok=False, reason="alarms", alarms=(Alarm(node=NODE, resource="memory"),))
BLIND = Part(error="timed out")


def alarmed(**parts):
    """A disk alarm on a node that has hardly any disk left."""
    short = (node(disk_free=40_000_000, disk_free_limit=50_000_000, disk_free_alarm=True, mem_limit=1),)
    return lambda _: {"health": (DISK,), "nodes": short, **parts}


def test_it_is_critical_at_once_and_says_who_is_held_back():
    """One reading is enough; the largest queues of the node are named."""
    parts = {
        "connections": (connection("a", state="blocked"), connection("b")),
        "queues": (
            queue("small", message_bytes=10),
            queue("large", message_bytes=GB),
            queue("elsewhere", message_bytes=9 * GB, node="b"),
        ),
    }
    finding = only(look(film(alarmed(**parts), until=0)))

    assert ("disk-alarm", "critical", NODE) == (finding.rule, finding.severity.value, finding.subject.name)
    assert "1 connection by now" in finding.summary
    assert "38 MiB above 48 MiB" in told(finding)
    assert "queue 'large'" in told(finding)
    assert "elsewhere" not in told(finding)


def test_a_memory_alarm_is_another_cause():
    """Both block publishers; each has its own rule."""
    verdict = look(film(lambda _: {"health": (MEMORY,)}, until=0))

    assert ["memory-alarm"] == [finding.rule for finding in verdict.findings]


def test_a_limit_that_is_too_high_is_said_to_be_so():
    """Hundreds of gigabytes are free, and the limit asks for more."""
    high = lambda _: {"health": (DISK,), "nodes": (node(disk_free=400 * GB, disk_free_limit=9000 * GB),)}  # noqa: E731

    assert "perhaps the limit is set too high" in told(only(look(film(high, until=0))))


@pytest.mark.parametrize("late", [False, True], ids=["node knows", "node does not know"])
def test_without_the_check_only_a_node_that_tells_is_believed(late):
    """Silence of /api/nodes proves nothing."""
    nodes = (node(disk_free_alarm=not late),)
    verdict = look(film(lambda _: {"health": BLIND, "nodes": nodes}, until=5))

    assert [] == [f.rule for f in verdict.findings] if late else ["disk-alarm"] == [f.rule for f in verdict.findings]
    assert late == ("disk-alarm" in [gap.rule for gap in verdict.inconclusive])


def test_without_the_check_a_blocked_probe_is_proof():
    """The broker told a client why it holds it back."""
    held = (outcome("confirm", "classic", state=ProbeState.BLOCKED, reason="connection.blocked: low on disk"),)
    window = film(lambda _: {"health": BLIND, "nodes": ()}, until=5)

    assert [("disk-alarm", "critical", "shop")] == found(look(window, outcomes=held))


def test_fields_that_are_absent_are_no_zero():
    """A node that tells no figures has an alarm all the same, without them."""
    bare = lambda _: {"health": (DISK,), "nodes": (node(disk_free=None, disk_free_limit=None),)}  # noqa: E731

    assert "free disk" not in [item.what for item in only(look(film(bare, until=0))).evidence]


def test_no_alarm_is_no_finding():
    """A healthy node."""
    assert [] == found(look(film(frame(), until=30)))
