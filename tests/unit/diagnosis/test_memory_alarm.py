import pytest

from ackscope.records import ProbeOutcome, ProbeState
from ackscope.snapshot import Alarm, HealthCheck, Node, Part
from diagnosis.text import Cluster, render
from tests.unit.diagnosis.pictures import (
    ALARM,
    NODE,
    OK,
    WALL,
    connection,
    evidence,
    film,
    found,
    look,
    only,
    queue,
    text,
)

BLIND = Part(error="timed out")


def outcome(state, reason=None):
    """What the confirm probe sees."""
    return ProbeOutcome(
        probe="confirm", stream="classic", queue_type="classic", vhost="/", queue="ackscope.probe.confirm.classic",
        node=NODE, at=WALL, state=state, reason=reason,
    )  # fmt: skip


def node(**fields):
    """A node that runs."""
    return Node(name=NODE, running=True, **fields)


def test_an_alarm_is_critical_at_once():
    """One reading of the health check is enough, whatever /api/nodes shows."""
    window = film(lambda _: {"health": (ALARM,), "nodes": (node(mem_alarm=False),)}, until=0)

    assert [("memory-alarm", "critical", NODE)] == found(look(window))


@pytest.mark.parametrize(
    ("states", "said", "clients"),
    [
        ({"web": "blocked", "api": "blocked", "worker": "blocking"}, "2 connections now", ("api", "web")),
        ({"web": "blocked", "a": "blocking", "b": "blocking", "c": "running"}, "1 connection now", ("web",)),
        ({"a": "blocking", "b": "blocking"}, None, ("a", "b")),
    ],
    ids=["two stopped", "one stopped", "none has published"],
)
def test_connections_that_only_consume_are_not_counted_as_stopped_publishers(states, said, clients):
    """The broker blocks them once they publish; until then it reads their acknowledgements."""

    def frame(_):
        connections = tuple(connection(f"{name}:1", client_name=name, state=state) for name, state in states.items())
        return {"health": (ALARM,), "nodes": (node(),), "connections": connections}

    finding = next(each for each in look(film(frame, until=5)).findings if each.rule == "memory-alarm")
    summary = text(finding).summary

    assert summary.endswith(f"is blocked, {said}." if said else "is blocked.")
    assert clients == finding.involved.clients
    later = list(states.values()).count("blocking")
    assert later == evidence(finding, "blocked_connections").facts["only_if_they_publish"]


def test_it_names_what_is_blocked_and_what_uses_the_memory():
    """Connections that are blocked or will be, and the largest queues of the node."""

    def frame(_):
        return {
            "health": (ALARM,),
            "nodes": (node(mem_used=900 * 2**20, mem_limit=800 * 2**20, mem_alarm=True),),
            "connections": (connection("a", state="blocked"), connection("b", state="blocking"), connection("c")),
            "queues": (queue("small", memory=2**10), queue("large", memory=2**28, messages_ready=7)),
        }

    finding = only(look(film(frame, until=5)))
    largest = [item.facts["queue_name"] for item in finding.evidence if item.key == "queue_memory"]

    assert 2 == finding.facts["blocked_connections"]
    assert (900 * 2**20, 800 * 2**20) == (finding.facts["used_bytes"], finding.facts["limit_bytes"])
    assert ["large", "small"] == largest == [queue.name for queue in finding.involved.queues]


@pytest.mark.parametrize(
    ("before", "limit", "lowered"), [(12 * 2**30, 20 * 10**6, True), (2**30, 2**30 - 2**20, False)]
)
def test_a_limit_that_was_lowered_is_the_reason(before, limit, lowered):
    """A unit error: it is set back first, and no queue is purged for it."""

    def frame(t):
        over = t >= 30
        return {
            "health": (ALARM if over else OK,),
            "nodes": (node(mem_used=2**30 + 170 * 2**20, mem_limit=limit if over else before, mem_alarm=over),),
            "queues": (queue("orders", memory=75_000, message_bytes=40_000),),
        }

    finding = only(look(film(frame, until=45)))
    said = text(finding)
    commands = [step.command or "" for step in said.steps]

    assert (before if lowered else None) == finding.facts["lowered_from_bytes"]
    assert lowered == ("Its limit was lowered from 12 GiB to 19.1 MiB" in said.cause)
    assert lowered == commands[0].endswith(f"set_vm_memory_high_watermark absolute {before}")
    assert "draining them does not end the alarm" in said.cause
    assert not any("purge" in each for each in commands)


def test_since_is_the_first_reading_of_this_alarm():
    """An alarm that was over before does not count."""

    def frame(t):
        return {"health": (ALARM if t < 5 or t >= 20 else OK,)}

    assert "2027-01-15T08:00:20Z" == only(look(film(frame, until=30))).since


def test_each_node_has_its_own_finding():
    """The order of the list does not matter."""
    both = HealthCheck(
        name="alarms", ok=False, alarms=tuple(Alarm(node=name, resource="memory") for name in ("b", "a"))
    )
    window = film(lambda _: {"health": (both,)}, until=0)

    assert ["a", "b"] == sorted(name for _, _, name in found(look(window)))


def test_a_disk_alarm_is_another_cause():
    """It blocks publishers too, and has its own rule."""
    disk = HealthCheck(name="alarms", ok=False, alarms=(Alarm(node=NODE, resource="disk"),))
    result = look(film(lambda _: {"health": (disk,)}, until=0))

    assert "memory-alarm" not in [finding.rule for finding in result.findings]


def test_the_health_check_overrules_the_nodes():
    """/api/nodes lags in both directions."""
    window = film(lambda _: {"health": (OK,), "nodes": (node(mem_alarm=True),)}, until=5)

    assert [] == found(look(window))


def test_without_the_check_an_alarm_in_the_list_of_nodes_counts():
    """An alarm in /api/nodes is late, but true."""
    window = film(lambda _: {"health": BLIND, "nodes": (node(mem_alarm=True),)}, until=5)

    assert [("memory-alarm", "critical", NODE)] == found(look(window))


@pytest.mark.parametrize("health", [BLIND, (HealthCheck(name="alarms", ok=None),), ()], ids=["failed", "None", "no"])
def test_without_the_check_and_without_an_alarm_it_is_inconclusive(health):
    """/api/nodes shows alarms too late to prove that there is none."""
    result = look(film(lambda _: {"health": health, "nodes": (node(mem_alarm=False),)}, until=5))

    assert [] == found(result)
    gaps = {gap.rule: gap.reason for gap in result.inconclusive}

    assert "no_alarm_check" == gaps["memory-alarm"]


def test_without_the_check_a_blocked_probe_is_proof():
    """The broker gave a client the reason why it is blocked, but not the node."""
    held = (outcome(ProbeState.BLOCKED, "connection.blocked: low on memory"),)
    window = film(lambda _: {"health": BLIND, "nodes": ()}, until=5)

    assert [("memory-alarm", "critical", "shop")] == found(look(window, outcomes=held))


def test_a_blocked_probe_supports_the_finding():
    """What a client sees is evidence next to what the broker reports."""
    held = (outcome(ProbeState.BLOCKED, "connection.blocked: low on memory"),)
    window = film(lambda _: {"health": (ALARM,)}, until=5)

    blocked = evidence(only(look(window, outcomes=held)), "blocked_probe")

    assert ("connection.blocked: low on memory", "confirm.classic") == (blocked.value, blocked.facts["stream"])


@pytest.mark.parametrize(
    ("version", "default", "raised"), [((3, 10), "0.4", "0.6"), ((4, 3), "0.6", "0.7")], ids=["3.10", "4.3"]
)
def test_the_watermark_is_that_of_the_version(version, default, raised):
    """Its default rose with 4.0; a command that lowers it would make things worse."""
    report = render(only(look(film(lambda _: {"health": (ALARM,)}, until=0))), Cluster(version=version))
    (step,) = [each for each in report.steps if "set_vm_memory_high_watermark" in (each.command or "")]

    assert f"rabbitmqctl -n {NODE} set_vm_memory_high_watermark {raised}" == step.command
    assert f"default of this version: {default}" in step.text
