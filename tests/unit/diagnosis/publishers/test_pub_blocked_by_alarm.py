import pytest

from diagnosis.text import Cluster, render
from tests.unit.diagnosis.pictures import ALARM, OK, channel, film, look
from tests.unit.diagnosis.publishers.films import PEER, busy_queue, facts, findings, of, publisher, shop

RULE, MIXED, RISK = "pub-blocked-by-alarm", "mixed-connection", ("info", "vhost", "/")
CONSUMING = f"{PEER} (2)"


def alarmed(t, *, state="blocked", since=30.0, check=ALARM, until=1e9, more=()):
    """A publisher that is blocked from second 30 on."""
    late = since <= t < until
    return {
        "queues": (busy_queue(min(t, since)),),
        "channels": (publisher(min(t, since)), *more),
        "connections": (shop(state=state if late else "running"),),
        "health": (check if late else OK,),
    }


def mixed(t, **fields):
    """The same, with a consumer on the same connection that has five unacknowledged messages."""
    consumer = channel(CONSUMING, connection_name=PEER, consumer_count=1, messages_unacked=5)
    return alarmed(t, more=(consumer,), **fields)


def test_blocked_publishers_are_a_consequence_of_the_alarm():
    """The alarm is the cause; this finding names who is affected."""
    verdict = look(film(alarmed, until=35))

    assert ["memory-alarm"] == [finding.rule for finding in verdict.findings]
    assert [("critical", "cluster", "shop")] == of(verdict, RULE)
    finding = findings(verdict, RULE)[0]
    assert (1, ["shop"], ["memory on rabbit@one"]) == tuple(
        finding.facts[key] for key in ("blocked", "clients", "alarms")
    )
    assert (PEER,) == finding.involved.connections
    assert ["connection", "alarms"] == [item.key for item in finding.evidence]


def test_connections_that_have_not_published_yet_are_no_finding_alone():
    """The broker reads from a `blocking` connection until it publishes."""
    assert [] == of(look(film(lambda t: alarmed(t, state="blocking"), until=60)), RULE)


def test_an_alarm_that_just_ended_is_over():
    """States of connections are seconds older than the health check."""

    def frame(t):
        return {**alarmed(t), "health": (ALARM if 30 <= t < 40 else OK,)}

    assert [] == of(look(film(frame, until=40)), RULE)


def test_a_state_that_stays_without_an_alarm_is_found_nevertheless():
    """The check may not show what the connection shows."""
    verdict = look(film(lambda t: alarmed(t, check=OK), until=60))

    assert [("critical", "cluster", "shop")] == of(verdict, RULE)
    assert [] == facts(verdict, RULE)["alarms"]


def test_healthy_connections_are_not_reported():
    """Running, flow."""
    for state in ("running", "flow", None):
        assert [] == of(look(film(lambda t, state=state: alarmed(t, state=state, check=OK), until=60)), RULE)


def test_a_blocked_connection_that_consumes_cannot_acknowledge():
    """Critical immediately, and a consequence of the alarm."""
    verdict = look(film(mixed, until=35))

    assert [("critical", "vhost", "/")] == of(verdict, MIXED)
    assert ["memory-alarm"] == [finding.rule for finding in verdict.findings]
    assert (1, ["shop"]) == tuple(facts(verdict, MIXED)[key] for key in ("connections", "clients"))
    assert [(1, 5)] == [
        (item.facts["consumers"], item.facts["unacked"]) for item in findings(verdict, MIXED)[0].evidence
    ]


def test_before_an_alarm_it_is_a_risk():
    """One connection publishes and consumes."""
    assert [RISK] == of(look(film(mixed, until=20)), MIXED)


@pytest.mark.parametrize(("version", "watermark"), [((3, 10), "0.6"), ((4, 0), "0.7")])
def test_the_watermark_depends_on_the_version(version, watermark):
    """The default is 0.4 before 4.0, and 0.6 since."""
    report = render(findings(look(film(mixed, until=35)), MIXED)[0], Cluster(version=version))

    assert [f"rabbitmqctl set_vm_memory_high_watermark {watermark}"] == [
        step.command for step in report.steps if step.command
    ]


def test_separate_connections_are_no_risk():
    """The consumer has its own."""
    other = "10.0.0.9:50009 -> 10.0.0.1:5672"

    def frame(t):
        picture = alarmed(t, since=1e6)
        return {
            **picture,
            "channels": (*picture["channels"], channel(f"{other} (1)", messages_unacked=5)),
            "connections": (*picture["connections"], shop(other)),
        }

    assert [] == of(look(film(frame, until=60)), MIXED)


def test_a_mixed_connection_that_has_not_published_is_not_blocked():
    """In state `blocking` its acknowledgements are still read, so it is only a risk."""
    assert {RISK} >= set(of(look(film(lambda t: mixed(t, state="blocking"), until=60)), MIXED))
