from dataclasses import replace

import pytest

from ackscope.records import ProbeState
from ackscope.snapshot import Alarm, HealthCheck, Part
from tests.unit.diagnosis.nodes.machines import GB, frame, node, outcome
from tests.unit.diagnosis.pictures import NODE, connection, film, found, look, only, queue, text

DISK = HealthCheck(name="alarms", ok=False, reason="alarms", alarms=(Alarm(node=NODE, resource="disk"),))
MEMORY = HealthCheck(name="alarms", ok=False, reason="alarms", alarms=(Alarm(node=NODE, resource="memory"),))
BLIND = Part(error="timed out")


def alarmed(**parts):
    """A disk alarm on a node with hardly any free disk."""
    short = (node(disk_free=40_000_000, disk_free_limit=50_000_000, disk_free_alarm=True, mem_limit=1),)
    return lambda _: {"health": (DISK,), "nodes": short, **parts}


def test_it_is_critical_at_once_and_names_what_is_blocked():
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
    assert (1, 40_000_000, 50_000_000) == tuple(
        finding.facts[key] for key in ("blocked_connections", "free_bytes", "limit_bytes")
    )
    assert {"vhost": "/", "name": "large"} == finding.facts["largest_queue"]
    assert ["large", "small"] == [queue.name for queue in finding.involved.queues]
    assert (("billing",), (NODE,)) == (finding.involved.clients, finding.involved.nodes)


def test_a_memory_alarm_is_another_cause():
    """Both block publishers; each has its own rule."""
    result = look(film(lambda _: {"health": (MEMORY,)}, until=0))

    assert ["memory-alarm"] == [finding.rule for finding in result.findings]


def test_a_limit_that_is_too_high_is_named_as_the_cause():
    """Hundreds of gigabytes are free, and the limit is higher still."""
    high = lambda _: {"health": (DISK,), "nodes": (node(disk_free=400 * GB, disk_free_limit=9000 * GB),)}  # noqa: E731

    assert only(look(film(high, until=0))).facts["limit_too_high"]


@pytest.mark.parametrize("late", [False, True], ids=["node knows", "node does not know"])
def test_without_the_check_only_an_alarm_in_the_list_of_nodes_counts(late):
    """That /api/nodes shows no alarm proves nothing."""
    nodes = (node(disk_free_alarm=not late),)
    result = look(film(lambda _: {"health": BLIND, "nodes": nodes}, until=5))

    assert [] == [f.rule for f in result.findings] if late else ["disk-alarm"] == [f.rule for f in result.findings]
    assert late == ("disk-alarm" in [gap.rule for gap in result.inconclusive])


def test_without_the_check_a_blocked_probe_is_proof():
    """The broker gave a client the reason why it is blocked."""
    held = (outcome("confirm", "classic", state=ProbeState.BLOCKED, reason="connection.blocked: low on disk"),)
    window = film(lambda _: {"health": BLIND, "nodes": ()}, until=5)

    assert [("disk-alarm", "critical", "shop")] == found(look(window, outcomes=held))


def test_a_node_without_values_has_an_alarm_all_the_same():
    """Absent is not zero."""
    bare = lambda _: {"health": (DISK,), "nodes": (node(disk_free=None, disk_free_limit=None),)}  # noqa: E731

    assert "disk_free" not in [item.key for item in only(look(film(bare, until=0))).evidence]


def test_no_alarm_is_no_finding():
    """A healthy node."""
    assert [] == found(look(film(frame(), until=30)))


def test_a_limit_that_was_raised_is_the_reason_and_no_queue_is_purged_for_it():
    """The node shows the limit some seconds late, and somebody may have set it back meanwhile."""

    def frame_at(t):
        limit = 90_000 * GB if 20 <= t < 40 else GB // 20
        return {
            "health": (DISK,),
            "nodes": (node(disk_free=60 * GB, disk_free_limit=limit),),
            "queues": (queue("claims", message_bytes=300),),
        }

    finding = only(look(film(frame_at, until=60)))

    assert (GB // 20, 90_000 * GB, False) == tuple(
        finding.facts[key] for key in ("raised_from_bytes", "raised_to_bytes", "queues_explain")
    )
    back, check = (step.command or "" for step in text(finding).steps)
    assert f"set_disk_free_limit {GB // 20}" in back
    assert "disk_free_limit" in check


def test_a_limit_that_follows_the_memory_of_the_host_was_not_raised():
    """It was a little lower before, and the disk really fell below it."""
    lower = lambda t: {"health": (DISK,), "nodes": (node(disk_free=GB, disk_free_limit=int((1.9 + t / 100) * GB)),)}  # noqa: E731

    assert only(look(film(lower, until=20))).facts["raised_from_bytes"] is None


def test_an_alarm_that_comes_and_goes_is_counted():
    """Since is the beginning of the present one."""
    well = replace(DISK, ok=True, alarms=())
    window = film(lambda t: alarmed()(t) | {"health": (DISK if t % 30 >= 20 else well,)}, until=85)
    finding = next(each for each in look(window).findings if each.rule == "disk-alarm")

    assert (3, 85.0, "2027-01-15T08:01:20Z") == (
        finding.facts["times"],
        finding.facts["watched_seconds"],
        finding.since,
    )
    assert "it came 3 times in 85 s" in text(finding).summary
    assert "times" not in text(look(film(alarmed(), until=85)).findings[0]).summary
