import pytest

from ackscope.snapshot import HealthCheck, Node
from ackscope.topology import AuthAttempts, Limit, VHost
from tests.unit.diagnosis.clients.loops import churning
from tests.unit.diagnosis.pictures import NODE, connection, film, found, look, only, queue, stats, text

LATE = 5.0
"""Seconds after which the broker counts a connection; it counts a login at once."""
BURST_AT = 30.0
NODE_OF_A_DAY = Node(name=NODE, running=True, uptime_seconds=86_400.0)


def refusing(t, *, refused=0.0, until=1e9, accepted=0.0, checks=0.0, burst=0, protocol="amqp091", **fields):
    """A cluster to which some clients connect.

    Args:
        t: second of the film.
        refused: connections a second that are refused after their login.
        until: second at which that stops.
        accepted: connections a second that are opened and closed.
        checks: connections a second that end before their login.
        burst: connections that are all opened at one moment, and stay.
        protocol: of the logins.
        **fields: other parts of the snapshot.
    """
    then = max(0.0, t - LATE)
    logins = int(refused * min(t, until)) + int(accepted * t) + burst * (t >= BURST_AT)
    stay = burst * (then >= BURST_AT)
    over = int(accepted * then)
    ended = over + int(refused * min(then, until)) + int(checks * then)
    churn = {"connection_created": 50 + over + stay, "connection_closed": 40 + ended}
    login = AuthAttempts(node=NODE, protocol=protocol, total=90 + logins, succeeded=90 + logins, failed=0)
    return {"overview": churning(t, churn=churn, connections=10 + stay), "auth": (login,), **fields}


@pytest.mark.parametrize(("refused", "accepted", "checks"), [(0.5, 0.0, 0.0), (2.0, 0.5, 1.0), (0.3, 0.0, 5.0)])
def test_logins_that_open_no_connection_are_a_warning_while_they_continue(refused, accepted, checks):
    """At any rate, and beside clients that connect and port checks."""
    finding = only(look(film(lambda t: refusing(t, refused=refused, accepted=accepted, checks=checks), until=90)))

    assert ("connection-open-refused", "warning", "shop") == (finding.rule, finding.severity, finding.subject.name)
    # The last two readings of logins have no later reading of connections yet.
    assert refused * 60 <= finding.facts["refused"] <= refused * 90


def test_some_that_have_stopped_are_information():
    """A client that was corrected."""
    finding = only(look(film(lambda t: refusing(t, refused=1.0, until=20), until=90)))

    assert ("info", 20, False) == (finding.severity, finding.facts["refused"], finding.facts["continues"])


@pytest.mark.parametrize(
    "frame",
    [
        lambda t: refusing(t, accepted=4.0, checks=2.0),
        lambda t: refusing(t, burst=300, checks=10.0),
        lambda t: refusing(t, checks=3.0),
        lambda t: refusing(t, refused=0.03),
        lambda t: refusing(t, refused=1.0, protocol="http"),
        lambda t: {"overview": churning(t), "auth": (AuthAttempts(node=NODE, protocol="amqp091"),)},
    ],
    ids=["clients come and go", "a deployment", "port checks", "one mistake", "the management API", "unknown"],
)
def test_what_looks_like_it_is_not_reported(frame):
    """At no moment; connections are counted later than logins."""
    for until in range(20, 65, 5):
        assert [] == [each for each in found(look(film(frame, until=until))) if each[0] == "connection-open-refused"]


def test_counters_are_not_compared_across_a_restart():
    """Counters that fell belong to a restarted node."""
    verdict = look(
        film(lambda t: refusing(t if t < 40 else t - 40, refused=0.0 if t < 40 else 0.1, burst=60), until=50)
    )

    assert [] == [each for each in found(verdict) if each[0] == "connection-open-refused"]


def test_a_limit_of_connections_that_is_used_up_is_its_cause():
    """Connections that the limit refuses have logged in as well."""
    mine = tuple(connection(f"10.0.0.7:{port} -> 10.0.0.1:5672", vhost="shop") for port in range(50000, 50010))
    limit = Limit(scope="vhost", subject="shop", name="max-connections", value=10)
    finding = only(look(film(lambda t: refusing(t, refused=1.0, connections=mine, limits=(limit,)), until=60)))

    assert "connection-limit-reached" == finding.rule
    assert ["connection-open-refused"] == [each.rule for each in finding.consequences]


def test_a_virtual_host_that_was_deleted_is_its_cause():
    """Its clients connect again and again."""

    def frame(t):
        there = t < 30
        held = queue("inbox", vhost="billing", messages_ready=80, stats=stats(publish=80))
        vhosts = (VHost(name="/"), VHost(name="billing")) if there else (VHost(name="/"),)
        parts = refusing(max(0.0, t - 30), refused=2.0)
        return {**parts, "queues": (held,) if there else (), "vhosts": vhosts, "nodes": (NODE_OF_A_DAY,)}

    (cause,) = [each for each in look(film(frame, until=90)).findings if each.severity == "warning"]

    assert "queue-deleted" == cause.rule
    assert ["connection-open-refused"] == [each.rule for each in cause.consequences]


def interrupted(t, *, until=40.0, refused=20.0, listed=True, name="lager"):
    """A virtual host is down for some time, and its clients retry meanwhile.

    Args:
        t: second of the film.
        until: second at which it runs again, after second 20.
        refused: second from which on clients are refused.
        listed: whether a list of virtual hosts shows it, or only the health check.
        name: of the virtual host.
    """
    off = 20 <= t < until
    state = VHost(name=name, cluster_state={NODE: "stopped" if off and listed else "running"})
    health = (HealthCheck(name="virtual-hosts", ok=not off),)
    made = refusing(max(0.0, t - refused), refused=1.0, until=until - refused)
    return {**made, "vhosts": (state, VHost(name="/", cluster_state={NODE: "running"})), "health": health}


@pytest.mark.parametrize(("until", "ends"), [(35.0, 75), (40.0, 90), (50.0, 160)])
@pytest.mark.parametrize(("listed", "name"), [(True, "lager"), (True, "pay desk"), (False, "lager")])
def test_a_vhost_that_was_down_meanwhile_is_the_cause(until, ends, listed, name):
    """The settings of its clients are right."""
    finding = of(look(film(lambda t: interrupted(t, until=until, listed=listed, name=name), until=ends)))

    assert (name if listed else None) == finding.facts["outage"]["vhost"]
    assert "was down" in text(finding).summary
    assert not any("set_permissions" in (step.command or "") for step in text(finding).steps)


@pytest.mark.parametrize(
    "frame",
    [
        lambda t: {**interrupted(t), **refusing(t, refused=1.0)},
        lambda t: {**interrupted(t), "health": (), "vhosts": (VHost(name="/", cluster_state={NODE: "running"}),)},
    ],
    ids=["refused before and after", "no vhost was down"],
)
def test_other_refusals_have_another_cause(frame):
    """A client that is refused without an outage, or in spite of its end, is wrong itself."""
    finding = of(look(film(frame, until=90)))

    assert finding.facts["outage"] is None
    assert any("set_permissions" in (step.command or "") for step in text(finding).steps)


def of(verdict):
    """The finding of this rule."""
    (finding,) = [each for each in verdict.findings if each.rule == "connection-open-refused"]
    return finding
