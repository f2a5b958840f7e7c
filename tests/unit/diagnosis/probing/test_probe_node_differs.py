import pytest

from ackscope.records import ProbeState
from ackscope.snapshot import Node
from tests.unit.diagnosis.pictures import full_text
from tests.unit.diagnosis.probing.heard import heard, of, one, outcome, step, took

RULE = "probe-node-differs"
NODES = ("rabbit@one", "rabbit@two", "rabbit@three")


def trips(*seconds, **fields):
    """Return round trips to each node."""
    return [
        outcome("rtt", node=node, steps={"declare": step(time)}, **fields)
        for node, time in zip(NODES, seconds, strict=False)
    ]


@pytest.mark.parametrize(("third", "severity"), [(0.04, "info"), (0.3, "warning")])
def test_a_node_that_is_slow_is_reported_with_what_its_peers_take(third, severity):
    """Behind a load balancer nobody sees which it is."""
    verdict = heard(*trips(0.001, 0.001, third))

    assert [(severity, "rabbit@three")] == of(RULE, verdict)
    assert 0.001 == one(RULE, verdict).facts["peers_seconds"]


@pytest.mark.parametrize(
    "seconds", [(0.001, 0.001, 0.005), (0.3, 0.3, 0.35), (0.001,)], ids=["little", "all slow", "one node only"]
)
def test_nodes_that_are_alike_are_left_alone(seconds):
    """The limit is three times as long, and 20 ms more."""
    assert [] == of(RULE, heard(*trips(*seconds)))


def test_a_node_that_fails_is_a_warning():
    """With the reason that the probe gives."""
    failed = outcome("rtt", node="rabbit@three", state=ProbeState.FAILED, reason="connection refused", success=False)
    finding = one(RULE, heard(*trips(0.001, 0.001), failed))

    assert ("warning", "rabbit@three") == (finding.severity, finding.subject.name)
    assert "connection refused" == finding.facts["reason"]


def test_where_all_fail_no_node_differs():
    """There is nothing to compare with."""
    gone = [outcome("rtt", node=node, state=ProbeState.FAILED, reason="gone", success=False) for node in NODES]

    assert [] == of(RULE, heard(*gone))


def test_confirms_are_compared_by_stream():
    """A quorum queue is slower than a classic one, everywhere."""
    usual = [outcome("confirm", "quorum", node=node, confirm=took(0.05)) for node in NODES]
    classic = [outcome("confirm", "classic", node=node, confirm=took(0.001)) for node in NODES[:2]]
    slow = outcome("confirm", "classic", node=NODES[2], confirm=took(0.4))

    assert [] == of(RULE, heard(*usual, *classic))
    assert "confirm.classic" in full_text(one(RULE, heard(*usual, *classic, slow)))


def test_what_the_probe_may_have_made_itself_is_not_compared():
    """The probe itself was late by as much."""
    late = outcome("rtt", node=NODES[2], steps={"declare": step(0.4)}, loop_lag=took(0.3))

    assert [] == of(RULE, heard(*trips(0.001, 0.001), late))


def test_few_answers_tell_nothing_by_themselves():
    """With two handshakes per minute, a slow one changes the median. They only support another difference."""
    shaken = [
        outcome("handshake", node=node, steps={"open": step(time, count=2)})
        for node, time in zip(NODES, (0.02, 0.02, 0.4), strict=True)
    ]

    assert [] == of(RULE, heard(*shaken))
    assert "handshake, step open" in full_text(one(RULE, heard(*shaken, *trips(0.001, 0.001, 0.04))))
    assert [("info", NODES[2])] == of(RULE, heard(*shaken, *trips(0.001, 0.001, 0.04)))


def test_nodes_that_compete_for_processors_are_slow_by_turns():
    """At the other nodes one answer in ten takes as long. If the node takes twice as long, it differs."""
    peers = [outcome("confirm", "classic", node=node, confirm=took(0.02, p90=0.15)) for node in NODES[:2]]

    def third(seconds):
        return outcome("confirm", "classic", node=NODES[2], confirm=took(seconds))

    assert [] == of(RULE, heard(*peers, third(0.14)))
    assert [("warning", NODES[2])] == of(RULE, heard(*peers, third(0.3)))


def test_what_a_probe_of_a_peer_may_have_made_is_not_compared_either():
    """One process runs them all."""
    late = outcome("rtt", node=NODES[0], steps={"declare": step(0.001)}, loop_lag=took(0.3))

    assert [] == of(RULE, heard(late, *trips(0.001, 0.001, 0.3)[1:]))


@pytest.mark.parametrize(("uptime", "reported_of"), [(20.0, 0), (120.0, 1)], ids=["just started", "warm"])
def test_a_node_that_was_just_started_is_not_compared(uptime, reported_of):
    """The node is left out, because every node is slow when it starts."""
    nodes = tuple(Node(name=node, running=True, uptime_seconds=uptime) for node in NODES)
    verdict = heard(*trips(0.001, 0.001, 0.3), parts={"nodes": nodes})

    assert reported_of == len(of(RULE, verdict))
    assert 1 - reported_of == len([each for each in verdict.suppressed if each.rule == RULE])
