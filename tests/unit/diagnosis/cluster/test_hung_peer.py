import pytest

from ackscope.records import ProbeOutcome, ProbeState, ProbeStep
from ackscope.snapshot import Overview, Part
from tests.unit.diagnosis.cluster.scenes import ONE, THREE, finding_of, nodes, told_of
from tests.unit.diagnosis.pictures import OK, WALL, film, look, moment, told

RULE = "hung-peer"
HUNG = 20.0
LATE = "http://10.0.0.1:15672/api/nodes: no answer within 4 s"


def stale(value, at, error=LATE):
    """A part whose reading fails since."""
    return Part(value=value, at=moment(at), seconds=0.1, error=error)


def frozen(t, *, families=("overview", "nodes", "queues"), error=LATE):
    """A peer freezes: what asks all nodes hangs, health checks answer."""
    overview = Overview(rabbitmq_version="4.3.6", statistics=True, rates_mode="basic")
    values = {"overview": overview, "nodes": nodes(), "queues": ()}
    if t < HUNG:
        return {**values, "health": (OK,)}
    return {**values, **{name: stale(values[name], HUNG - 5, error) for name in families}, "health": (OK,)}


def handshake(name, *, hangs):
    """What the handshake probe of one node lives through."""
    opening = ProbeStep(attempts=5, failures=5 if hangs else 0, reason="no answer in time" if hangs else None)
    return ProbeOutcome(
        probe="handshake", stream="handshake", queue_type="none", vhost="/", queue="", node=name, at=WALL,
        state=ProbeState.RUNNING, steps={"tcp": ProbeStep(attempts=5), "open": opening},
    )  # fmt: skip


def test_the_frozen_node_is_named_by_its_handshake():
    """TCP is accepted, AMQP never answers: exactly one does so."""
    probes = (handshake(ONE, hangs=False), handshake(THREE, hangs=True))
    verdict = look(film(frozen, until=30), outcomes=probes)

    assert [("critical", "node", THREE)] == told_of(verdict, RULE)
    assert f"rabbitmq-diagnostics -n {THREE} ping" in told(finding_of(verdict, RULE))


def test_without_probes_of_each_node_it_is_one_of_them():
    """And it says how to find out which."""
    verdict = look(film(frozen, until=30))

    assert [("critical", "cluster", "shop")] == told_of(verdict, RULE)
    assert ["amqp.nodes" in gap.needs for gap in verdict.inconclusive if gap.rule == RULE] == [True]


def test_one_late_answer_is_no_frozen_node():
    """Ten seconds since the last good reading, at least."""
    assert [] == told_of(look(film(frozen, until=20)), RULE)


@pytest.mark.parametrize(
    "change",
    [{"families": ("queues",)}, {"families": ("overview", "queues")}, {"error": "connection refused"}],
    ids=["large lists are slow", "the list of nodes answers", "the broker is away"],
)
def test_look_alikes_are_not_told(change):
    """An overloaded API answers for three nodes; a broker that is away answers nothing."""
    assert [] == told_of(look(film(lambda t: frozen(t, **change), until=40)), RULE)


def test_without_health_checks_it_is_not_known():
    """Then the whole API may be away."""

    def frame(t):
        health = {"health": stale((OK,), HUNG - 5)} if t >= HUNG else {}
        return {**frozen(t), **health}

    assert [] == told_of(look(film(frame, until=40)), RULE)


def test_a_node_that_was_given_up_is_still_told_to_be_frozen():
    """After net_ticktime it counts as down, and its port goes on to take connections."""

    def frame(t):
        return {"nodes": nodes(THREE) if t >= HUNG else nodes()}

    finding = finding_of(look(film(frame, until=40), outcomes=(handshake(THREE, hangs=True),)), "node-down")

    assert "it is frozen, and not ended" in finding.cause
    assert "no answer in time" in told(finding)
