import pytest

from ackscope.records import ProbeOutcome, ProbeState
from ackscope.snapshot import Alarm, HealthCheck, Node, Part
from tests.unit.diagnosis.pictures import ALARM, NODE, OK, WALL, connection, film, found, look, only, queue, text, told

BLIND = Part(error="timed out")


def outcome(state, reason=None):
    """What the confirm probe lives through."""
    return ProbeOutcome(
        probe="confirm", stream="classic", queue_type="classic", vhost="/", queue="ackscope.probe.confirm.classic",
        node=NODE, at=WALL, state=state, reason=reason,
    )  # fmt: skip


def node(**fields):
    """A node that runs."""
    return Node(name=NODE, running=True, **fields)


def test_an_alarm_is_critical_at_once():
    """One reading of the health check is enough, whatever /api/nodes still says."""
    window = film(lambda _: {"health": (ALARM,), "nodes": (node(mem_alarm=False),)}, until=0)

    assert [("memory-alarm", "critical", NODE)] == found(look(window))


def test_it_says_who_is_held_back_and_what_fills_the_memory():
    """Connections that are blocked or will be, and the largest queues of the node."""

    def frame(_):
        return {
            "health": (ALARM,),
            "nodes": (node(mem_used=900 * 2**20, mem_limit=800 * 2**20, mem_alarm=True),),
            "connections": (connection("a", state="blocked"), connection("b", state="blocking"), connection("c")),
            "queues": (queue("small", memory=2**10), queue("large", memory=2**28, messages_ready=7)),
        }

    finding = only(look(film(frame, until=5)))
    largest = [item.what for item in finding.evidence if item.what.startswith("queue ")]

    assert "2 connections by now" in finding.summary
    assert "900 MiB below 800 MiB" in told(finding)
    assert ["queue 'large' in vhost '/'", "queue 'small' in vhost '/'"] == largest


def test_since_is_the_first_reading_of_this_alarm():
    """An alarm that was over before does not count."""

    def frame(t):
        return {"health": (ALARM if t < 5 or t >= 20 else OK,)}

    assert "2027-01-15T08:00:20Z" == only(look(film(frame, until=30))).since


def test_each_node_has_its_own_finding():
    """The order of the list plays no part."""
    both = HealthCheck(
        name="alarms", ok=False, alarms=tuple(Alarm(node=name, resource="memory") for name in ("b", "a"))
    )
    window = film(lambda _: {"health": (both,)}, until=0)

    assert ["a", "b"] == sorted(name for _, _, name in found(look(window)))


def test_a_disk_alarm_is_another_cause():
    """It blocks publishers too, and has its own rule."""
    disk = HealthCheck(name="alarms", ok=False, alarms=(Alarm(node=NODE, resource="disk"),))
    verdict = look(film(lambda _: {"health": (disk,)}, until=0))

    assert "memory-alarm" not in [finding.rule for finding in verdict.findings]


def test_the_health_check_overrules_the_nodes():
    """/api/nodes lags in both directions."""
    window = film(lambda _: {"health": (OK,), "nodes": (node(mem_alarm=True),)}, until=5)

    assert [] == found(look(window))


def test_without_the_check_a_node_that_tells_is_believed():
    """An alarm in /api/nodes is late, but true."""
    window = film(lambda _: {"health": BLIND, "nodes": (node(mem_alarm=True),)}, until=5)

    assert [("memory-alarm", "critical", NODE)] == found(look(window))


@pytest.mark.parametrize("health", [BLIND, (HealthCheck(name="alarms", ok=None),), ()], ids=["failed", "None", "no"])
def test_without_the_check_silence_of_the_nodes_proves_nothing(health):
    """The rule says that it cannot tell, and what would make it."""
    verdict = look(film(lambda _: {"health": health, "nodes": (node(mem_alarm=False),)}, until=5))

    assert [] == found(verdict)
    gaps = {gap.rule: text(gap).needs for gap in verdict.inconclusive}

    assert "rabbitmq-diagnostics check_alarms" in gaps["memory-alarm"]


def test_without_the_check_a_blocked_probe_is_proof():
    """The broker told a client why it holds it back; which node it is for, it did not say."""
    held = (outcome(ProbeState.BLOCKED, "connection.blocked: low on memory"),)
    window = film(lambda _: {"health": BLIND, "nodes": ()}, until=5)

    assert [("memory-alarm", "critical", "shop")] == found(look(window, outcomes=held))


def test_a_blocked_probe_supports_the_finding():
    """What a client lives through stands beside what the broker says."""
    held = (outcome(ProbeState.BLOCKED, "connection.blocked: low on memory"),)
    window = film(lambda _: {"health": (ALARM,)}, until=5)

    assert "probe confirm classic blocked: connection.blocked: low on memory" in told(only(look(window, outcomes=held)))


@pytest.mark.parametrize(
    ("version", "default", "raised"), [("3.10.8", "0.4", "0.6"), ("4.3.6", "0.6", "0.7")], ids=["3.10", "4.3"]
)
def test_the_watermark_is_that_of_the_version(version, default, raised):
    """Its default rose with 4.0; a command that lowers it would make things worse."""
    report = told(only(look(film(lambda _: {"health": (ALARM,), "version": version}, until=0))))

    assert f"-n {NODE} set_vm_memory_high_watermark {raised}" in report
    assert f"default of this version: {default}" in report
