from tests.unit.diagnosis.pictures import ALARM, OK, channel, film, look, told
from tests.unit.diagnosis.publishers.films import PEER, busy_queue, of, publisher, shop, whole

RULE, MIXED, RISK = "pub-blocked-by-alarm", "mixed-connection", ("info", "vhost", "/")
CONSUMING = f"{PEER} (2)"


def alarmed(t, *, state="blocked", since=30.0, check=ALARM, until=1e9, more=()):
    """A publisher that is held back from second 30 on."""
    late = since <= t < until
    return {
        "queues": (busy_queue(min(t, since)),),
        "channels": (publisher(min(t, since)), *more),
        "connections": (shop(state=state if late else "running"),),
        "health": (check if late else OK,),
    }


def mixed(t, **fields):
    """The same, with a consumer on the same connection that holds five messages."""
    consumer = channel(CONSUMING, connection_name=PEER, consumer_count=1, messages_unacked=5)
    return alarmed(t, more=(consumer,), **fields)


def test_who_is_held_back_hangs_under_the_alarm():
    """The alarm is the cause; this says who suffers."""
    verdict = look(film(alarmed, until=35))

    assert ["memory-alarm"] == [finding.rule for finding in verdict.findings]
    assert [("critical", "cluster", "shop")] == of(verdict, RULE)
    assert "1 connection is held back: 'shop'" in whole(verdict, RULE)[0].summary


def test_who_has_not_published_yet_is_counted_and_not_told_alone():
    """`blocking` is read on until it publishes."""
    assert [] == of(look(film(lambda t: alarmed(t, state="blocking"), until=60)), RULE)


def test_an_alarm_that_just_ended_is_over():
    """States of connections are seconds behind the health check."""

    def frame(t):
        return {**alarmed(t), "health": (ALARM if 30 <= t < 40 else OK,)}

    assert [] == of(look(film(frame, until=40)), RULE)


def test_a_state_that_stays_without_an_alarm_is_told_all_the_same():
    """The check may not see what the connection lives through."""
    verdict = look(film(lambda t: alarmed(t, check=OK), until=60))

    assert [("critical", "cluster", "shop")] == of(verdict, RULE)
    assert "by the state of the connections" in whole(verdict, RULE)[0].cause


def test_healthy_connections_are_not_told():
    """Running, flow."""
    for state in ("running", "flow", None):
        assert [] == of(look(film(lambda t, state=state: alarmed(t, state=state, check=OK), until=60)), RULE)


def test_a_blocked_connection_that_consumes_cannot_acknowledge():
    """Critical at once, and a consequence of the alarm."""
    verdict = look(film(mixed, until=35))

    assert [("critical", "vhost", "/")] == of(verdict, MIXED)
    assert ["memory-alarm"] == [finding.rule for finding in verdict.findings]
    text = told(whole(verdict, MIXED)[0])
    assert "their acknowledgements are not read" in text
    assert "set_vm_memory_high_watermark 0.7" in text


def test_before_an_alarm_it_is_a_risk():
    """One connection publishes and consumes."""
    assert [RISK] == of(look(film(mixed, until=20)), MIXED)


def test_the_watermark_is_that_of_the_version():
    """3.x begins at 0.4."""

    def frame(t):
        return {**mixed(t), "version": "3.10.8"}

    assert "set_vm_memory_high_watermark 0.6" in told(whole(look(film(frame, until=35)), MIXED)[0])


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
    """`blocking`: its acknowledgements are read; there is the risk, and no more."""
    assert {RISK} >= set(of(look(film(lambda t: mixed(t, state="blocking"), until=60)), MIXED))
