from dataclasses import replace

import pytest

from ackscope.snapshot import HealthCheck
from ackscope.topology import AuthAttempts, Limit
from tests.unit.diagnosis.clients.loops import churning
from tests.unit.diagnosis.pictures import NODE, OK, connection, evidence, film, found, look, only, queue, stats, text


def limited(t, *, value=2, connections=2, scope="vhost", subject="shop", name="max-connections", refused=0.0, **fields):
    """Connections under a limit, and connections refused a second after their login."""
    mine = tuple(
        connection(f"10.0.0.7:{port} -> 10.0.0.1:5672", vhost="shop", user="app", channels=3)
        for port in range(50000, 50000 + connections)
    )
    rejected = int(refused * t)
    auth = AuthAttempts(node=NODE, protocol="amqp091", total=50 + rejected, succeeded=50 + rejected, failed=0)
    churn = {"connection_created": 50, "connection_closed": 40 + rejected}
    return {
        "overview": churning(t, churn=churn, connections=connections),
        "connections": mine,
        "auth": (auth,),
        "limits": (Limit(scope=scope, subject=subject, name=name, value=value),),
        **fields,
    }


def test_a_limit_that_is_used_up_while_others_are_refused_is_critical():
    """With who has the connections, and how many were refused."""
    finding = only(look(film(lambda t: limited(t, refused=1.0), until=20)))

    assert ("connection-limit-reached", "critical", "shop") == (finding.rule, finding.severity, finding.subject.name)
    expected = {"used": 2, "limit": 2, "full": True, "holders": [{"client": "billing", "used": 2}]}
    assert expected == {key: finding.facts[key] for key in expected}
    assert (5, 5.0) == (evidence(finding, "refused").value, evidence(finding, "refused").facts["refused_seconds"])
    command = "rabbitmqctl set_vhost_limits -p shop '{\"max-connections\": 10}'"
    assert command in [step.command for step in text(finding).steps]


def test_connections_that_do_nothing_are_named():
    """They count all the same."""

    def frame(t):
        made = limited(t, value=4, connections=1, scope="user", subject="app", refused=1.0)
        idle = tuple(
            connection(
                f"10.0.0.9:{port} -> 10.0.0.1:5672", vhost="/", user="app", client_name=f"pod-{port}", channels=0
            )
            for port in (1, 2, 3)
        )
        return {**made, "connections": (*made["connections"], *idle)}

    finding = only(look(film(frame, until=20)))
    said = text(finding)

    assert 3 == finding.facts["without_channel"]
    assert "3 of the connections have no channel" in said.cause
    assert "'pod-1'" in said.cause
    assert any("A restart of these clients frees 3 connections." in step.text for step in said.steps)


def test_a_pool_as_large_as_the_limit_is_a_warning():
    """Nobody is refused."""
    assert [("connection-limit-reached", "warning", "shop")] == found(look(film(limited, until=20)))


@pytest.mark.parametrize(
    ("value", "connections", "severity"),
    [(10, 9, "warning"), (10, 8, None), (-1, 9, None)],
    ids=["near", "far", "no limit"],
)
def test_nine_tenths_are_a_warning(value, connections, severity):
    """A negative limit is none."""
    verdict = look(film(lambda t: limited(t, value=value, connections=connections), until=20))

    assert ([severity] if severity else []) == [finding.severity for finding in verdict.findings]


def reconnecting(t, *, opens=False, listed=True, user="app", **fields):
    """Nine channels of nine, and a client that reconnects twice a second and gets no channel."""
    done = int(2 * t)
    late = connection(
        f"10.0.0.8:{40000 + done} -> 10.0.0.1:5672", client_name="late", user=user, vhost="/", channels=0,
        peer_host="10.0.0.8", peer_port=40000 + done,
    )  # fmt: skip
    frame = limited(t, value=9, connections=3, scope="user", subject="app", name="max-channels", **fields)
    there = frame["connections"] + ((late,) if listed else ())
    overview = churning(t, connections=done, channels=done if opens else 0)
    return {**frame, "overview": overview, "connections": there, "channels": ()}


@pytest.mark.parametrize("listed", [True, False])
def test_a_client_that_gets_no_channel_makes_a_limit_of_channels_critical(listed):
    """Its reconnections are a consequence; connections too brief to be listed fit as well."""
    verdict = look(film(lambda t: reconnecting(t, listed=listed), until=30))
    finding = next(each for each in verdict.findings if each.rule == "connection-limit-reached")

    assert ("critical", "user app", 9) == (finding.severity, finding.subject.name, finding.facts["used"])
    assert [("connection-limit-reached", "critical", "user app")] == found(verdict)
    assert ["connection-churn"] == [each.rule for each in finding.consequences]
    assert (["late"] if listed else []) == [each["client"] for each in finding.facts["clients"]]
    assert pytest.approx(2.0, rel=0.1) == evidence(finding, "no_channel").value


@pytest.mark.parametrize(
    "frame",
    [
        lambda t: reconnecting(t, opens=True),
        lambda t: reconnecting(t, user="other"),
        lambda t: limited(t, value=9, connections=3, scope="user", subject="app", name="max-channels", refused=1.0),
    ],
    ids=["it gets its channel", "another user", "refused logins are no refused channels"],
)
def test_a_limit_of_channels_that_refuses_nobody_is_a_warning(frame):
    """The churn is a finding of its own."""
    severities = {each.rule: each.severity for each in look(film(frame, until=30)).findings}

    assert "warning" == severities["connection-limit-reached"]


def test_channels_that_are_not_reported_are_unknown():
    """Absent is not zero."""

    def frame(t):
        shown = limited(t, value=9, connections=3, scope="user", subject="app", name="max-channels")
        return {**shown, "connections": tuple(replace(each, channels=None) for each in shown["connections"])}

    verdict = look(film(frame, until=20))

    assert [] == found(verdict)
    assert ("connection-limit-reached", "counts_missing") in [(each.rule, each.reason) for each in verdict.inconclusive]


def test_a_limit_of_zero_is_suppressed_until_somebody_is_refused():
    """Access is closed on purpose."""
    closed = look(film(lambda t: limited(t, value=0, connections=0), until=20))

    assert [] == found(closed)
    assert [("connection-limit-reached", "closed_on_purpose")] == [
        (each.rule, each.reason) for each in closed.suppressed
    ]
    assert "critical" == only(look(film(lambda t: limited(t, value=0, connections=0, refused=1.0), until=20))).severity


def test_the_health_check_of_the_broker_shows_the_limit_of_a_node():
    """Since 4.1."""
    check = HealthCheck(name="below-node-connection-limit", ok=False, reason="connection count is 10, limit 10")
    verdict = look(film(lambda t: limited(t, value=100, health=(OK, check)), until=20))

    assert [("connection-limit-reached", "critical", "shop")] == found(verdict)
    assert ("node", "connection count is 10, limit 10") == (
        only(verdict).facts["scope"],
        only(verdict).facts["reason"],
    )


def test_accepted_logins_are_not_counted_as_refused():
    """A client that connects once a second and stays connected for a moment."""

    def frame(t):
        opened = int(t)
        auth = AuthAttempts(node=NODE, protocol="amqp091", total=50 + opened, succeeded=50 + opened, failed=0)
        churn = {"connection_created": 50 + opened, "connection_closed": 40 + opened}
        return {**limited(t), "auth": (auth,), "overview": churning(t, churn=churn, connections=2)}

    severities = {each.severity for each in look(film(frame, until=20)).findings if each.rule != "connection-churn"}

    assert {"warning"} == severities


def drained(t, *, value=0, set_at=24.0, refused=1.0, left=True):
    """A limit that is set in second 24, after which a consumer leaves and cannot come back; its publisher stays."""
    limit = Limit(scope="vhost", subject="shop", name="max-connections", value=value)
    other = Limit(scope="vhost", subject="shop", name="max-queues", value=50)
    made = limited(t, connections=1, refused=refused if t > 30 else 0.0)
    waiting = int(6 * max(0.0, t - 31)) if left else 0
    took = int(6 * t) - waiting
    counters = stats(publish=int(6 * t), deliver=took, ack=took)
    gone = left and t > 31
    events = queue("issue", vhost="shop", consumers=0 if gone else 1, messages_ready=waiting, stats=counters)
    return {**made, "limits": (limit, other) if t >= set_at else (other,), "queues": (events,)}


def test_a_limit_of_0_names_the_queue_whose_consumer_it_keeps_out():
    """With the way to remove it, and without a restart of those that are still connected."""
    finding = only(look(film(drained, until=100)))

    assert ("connection-limit-reached", "critical") == (finding.rule, finding.severity)
    assert "no-consumer" in [each.rule for each in finding.consequences]
    assert "2027-01-15T08:00:30Z" == finding.since
    said = text(finding)
    assert "admits no new connection" in said.summary
    commands = [step.command for step in said.steps]
    assert 'rabbitmqctl set_vhost_limits -p shop \'{"max-connections": -1, "max-queues": 50}\'' in commands
    assert not any("it leaks" in step.text for step in said.steps)


def test_a_vhost_that_refuses_nobody_is_not_the_cause_of_a_queue_without_a_consumer():
    """It is closed on purpose, and the consumer left for another reason."""
    rules = [each.rule for each in look(film(lambda t: drained(t, refused=0.0), until=100)).findings]

    assert ["no-consumer"] == rules
