import pytest

from ackscope.snapshot import HealthCheck
from ackscope.topology import AuthAttempts, Limit
from tests.unit.diagnosis.clients.loops import churning
from tests.unit.diagnosis.pictures import NODE, OK, connection, film, found, look, only, told


def limited(t, *, value=2, there=2, scope="vhost", subject="shop", name="max-connections", refused=0.0, **fields):
    """So many connections under a limit, and so many refused a second after their login."""
    mine = tuple(
        connection(f"10.0.0.7:{port} -> 10.0.0.1:5672", vhost="shop", user="app", channels=3)
        for port in range(50000, 50000 + there)
    )
    turned = int(refused * t)
    auth = AuthAttempts(node=NODE, protocol="amqp091", total=50 + turned, succeeded=50 + turned, failed=0)
    churn = {"connection_created": 50, "connection_closed": 40 + turned}
    return {
        "overview": churning(t, churn=churn, connections=there),
        "connections": mine,
        "auth": (auth,),
        "limits": (Limit(scope=scope, subject=subject, name=name, value=value),),
        **fields,
    }


def test_a_limit_that_is_used_up_while_others_are_refused_is_critical():
    """With who has the connections, and how many were turned away."""
    finding = only(look(film(lambda t: limited(t, refused=1.0), until=20)))

    assert ("connection-limit-reached", "critical", "shop") == (finding.rule, finding.severity, finding.subject.name)
    assert "'billing' 2" in told(finding)
    assert "5 connections in 5 s" in told(finding)
    assert "set_vhost_limits -p shop '{\"max-connections\": 10}'" in told(finding)


def test_a_pool_as_large_as_the_limit_is_a_warning():
    """Nobody is refused."""
    assert [("connection-limit-reached", "warning", "shop")] == found(look(film(limited, until=20)))


@pytest.mark.parametrize(
    ("value", "there", "severity"), [(10, 9, "warning"), (10, 8, None), (-1, 9, None)], ids=["near", "far", "no limit"]
)
def test_nine_tenths_are_a_warning(value, there, severity):
    """A negative limit is none."""
    verdict = look(film(lambda t: limited(t, value=value, there=there), until=20))

    assert ([severity] if severity else []) == [finding.severity for finding in verdict.findings]


def test_limits_of_users_and_of_channels_count_as_well():
    """Nine channels of nine."""
    frame = lambda t: limited(t, value=9, there=3, scope="user", subject="app", name="max-channels", refused=1.0)  # noqa: E731

    assert [("connection-limit-reached", "critical", "user app")] == found(look(film(frame, until=20)))


def test_a_closed_door_is_left_alone_until_somebody_knocks():
    """A limit of 0."""
    quiet = look(film(lambda t: limited(t, value=0, there=0), until=20))

    assert [] == found(quiet)
    assert ["connection-limit-reached"] == [each.rule for each in quiet.suppressed]
    assert "critical" == only(look(film(lambda t: limited(t, value=0, there=0, refused=1.0), until=20))).severity


def test_the_brokers_own_check_tells_of_the_node():
    """From 4.1 on."""
    check = HealthCheck(name="below-node-connection-limit", ok=False, reason="connection count is 10, limit 10")
    verdict = look(film(lambda t: limited(t, value=100, health=(OK, check)), until=20))

    assert [("connection-limit-reached", "critical", "shop")] == found(verdict)
    assert "limit 10" in only(verdict).summary


def test_logins_that_are_let_in_are_not_counted_as_refused():
    """A client that connects once a second and stays connected for a moment."""

    def frame(t):
        come = int(t)
        auth = AuthAttempts(node=NODE, protocol="amqp091", total=50 + come, succeeded=50 + come, failed=0)
        churn = {"connection_created": 50 + come, "connection_closed": 40 + come}
        return {**limited(t), "auth": (auth,), "overview": churning(t, churn=churn, connections=2)}

    severities = {each.severity for each in look(film(frame, until=20)).findings if each.rule != "connection-churn"}

    assert {"warning"} == severities
