import pytest

from ackscope.records import ProbeOutcome, ProbeState, ProbeStep
from ackscope.snapshot import Overview, Part
from tests.unit.diagnosis.cluster.scenes import ONE, THREE, finding_of, nodes, reported
from tests.unit.diagnosis.pictures import OK, WALL, evidence, film, look, moment, text

RULE = "hung-peer"
HUNG = 20.0
LATE = "http://10.0.0.1:15672/api/nodes: no answer within 4 s"


def stale(value, at, error=LATE):
    """A family that cannot be read any more."""
    return Part(value=value, at=moment(at), seconds=0.1, error=error)


def frozen(t, *, families=("overview", "nodes", "queues"), error=LATE):
    """A peer freezes: requests that involve all nodes hang, health checks answer."""
    overview = Overview(rabbitmq_version="4.3.6", statistics=True, rates_mode="basic")
    values = {"overview": overview, "nodes": nodes(), "queues": ()}
    if t < HUNG:
        return {**values, "health": (OK,)}
    return {**values, **{name: stale(values[name], HUNG - 5, error) for name in families}, "health": (OK,)}


def handshake(name, *, hangs):
    """What the handshake probe of one node sees."""
    opening = ProbeStep(attempts=5, failures=5 if hangs else 0, reason="no answer in time" if hangs else None)
    return ProbeOutcome(
        probe="handshake", stream="handshake", queue_type="none", vhost="/", queue="", node=name, at=WALL,
        state=ProbeState.RUNNING, steps={"tcp": ProbeStep(attempts=5), "open": opening},
    )  # fmt: skip


def test_the_frozen_node_is_named_by_its_handshake():
    """TCP is accepted and AMQP never answers, at exactly one node."""
    probes = (handshake(ONE, hangs=False), handshake(THREE, hangs=True))
    result = look(film(frozen, until=30), outcomes=probes)

    assert [("critical", "node", THREE)] == reported(result, RULE)
    assert f"rabbitmq-diagnostics -n {THREE} ping --timeout 5" == text(finding_of(result, RULE)).steps[0].command


def test_without_probes_of_each_node_the_finding_is_about_the_cluster():
    """Which node it is remains inconclusive."""
    result = look(film(frozen, until=30))

    assert [("critical", "cluster", "shop")] == reported(result, RULE)
    assert ["node_unknown"] == [gap.reason for gap in result.inconclusive if gap.rule == RULE]


def test_one_late_answer_is_no_frozen_node():
    """The last good reading must be 10 s old."""
    assert [] == reported(look(film(frozen, until=20)), RULE)


@pytest.mark.parametrize(
    "change",
    [{"families": ("queues",)}, {"families": ("overview", "queues")}, {"error": "connection refused"}],
    ids=["large lists are slow", "the list of nodes answers", "the broker is down"],
)
def test_look_alikes_are_not_reported(change):
    """An overloaded API answers for three nodes; a broker that is down does not answer at all."""
    assert [] == reported(look(film(lambda t: frozen(t, **change), until=40)), RULE)


def test_without_health_checks_it_is_not_known():
    """The whole API may be down."""

    def frame(t):
        health = {"health": stale((OK,), HUNG - 5)} if t >= HUNG else {}
        return {**frozen(t), **health}

    assert [] == reported(look(film(frame, until=40)), RULE)


def test_a_frozen_node_that_its_peers_consider_down_is_named_as_frozen():
    """After net_ticktime it counts as down, and its port still accepts connections."""

    def frame(t):
        return {"nodes": nodes(THREE) if t >= HUNG else nodes()}

    finding = finding_of(look(film(frame, until=40), outcomes=(handshake(THREE, hangs=True),)), "node-down")

    assert finding.facts["accepts_connections"] is True
    assert "no answer in time" == evidence(finding, "handshake").value
