"""Consumers that use MQTT: the queue counts nothing, the connection its bytes."""

from dataclasses import replace

import pytest

from diagnosis.text import render_inconclusive
from tests.unit.diagnosis.consumers.results import found, only
from tests.unit.diagnosis.pictures import PEER, WALL, connection, consumer, film, full_text, look, queue, stats, text

NAME = "mqtt-subscription-meter-7qos1"


def frame(ready, *, held=10, sent=0, received=0, consumers=1, **fields):
    """The queue of a session, and its client if it is connected."""
    client = connection(client_name="meter-7", client_id="meter-7", protocol="MQTT 3-1-1", channels=None, heartbeat=30,
                        send_oct=sent, recv_oct=received, connected_at=WALL - 60, **fields)  # fmt: skip
    own = consumer(NAME, tag="mqtt", channel_name=None, prefetch_count=10)
    return {
        "queues": (queue(NAME, messages_ready=ready, messages_unacked=held, consumers=consumers, stats=stats()),),
        "consumers": (own,) * consumers,
        "connections": (client,) * consumers,
        "channels": (),
    }


def pings(t):
    """Bytes of pings, one in 30 s."""
    return 2 * int(t / 30)


def stuck(t):
    """It got ten and acknowledges none."""
    return frame(5 * int(t), sent=500 + pings(t), received=100 + pings(t))


def works(t):
    """Its window is full, and it acknowledges two a second; five arrive."""
    return frame(3 * int(t), sent=40 * int(t), received=8 * int(t))


def test_a_client_that_never_acknowledges_is_stuck():
    """Its bytes show it, because no counter moves."""
    finding = only(look(film(stuck, until=60)))

    assert ("stuck-consumer", "critical", NAME) == (finding.rule, finding.severity.value, finding.subject.name)
    assert (("meter-7",), (PEER,)) == (finding.involved.clients, finding.involved.connections)
    assert {"mqtt": True, "full": True, "unacked": 10, "prefetch": 10} == {
        key: finding.facts[key] for key in ("mqtt", "full", "unacked", "prefetch")
    }
    for words in ("sends no PUBACK", "'meter-7'", f"connection '{PEER}'", "prefetch 10"):
        assert words in full_text(finding)


@pytest.mark.parametrize(
    "calm",
    [
        # It holds all it may, and nothing waits.
        lambda t: frame(0, sent=500, received=100),
        # Nothing arrives any more.
        lambda t: frame(50, sent=500, received=100),
        lambda t: frame(5 * int(t), held=3, sent=500, received=100),
        lambda t: frame(5 * int(t), sent=500, received=100, state="blocked"),
    ],
    ids=["nothing waits", "nothing arrives", "may hold more", "alarm"],
)
def test_clients_that_are_not_stuck(calm):
    """No finding without evidence."""
    assert [] == [each for each in found(look(film(calm, until=170))) if each[0] in {"stuck-consumer", "slow-consumer"}]


def test_a_slow_client_is_named_without_a_pace():
    """Neither arrivals nor acknowledgements are counted."""
    finding = only(look(film(works, until=170)))

    assert ("slow-consumer", "warning", NAME) == (finding.rule, finding.severity.value, finding.subject.name)
    assert ("meter-7",) == finding.involved.clients
    assert 3 == pytest.approx(finding.facts["growth_rate"], rel=0.1)
    for words in ("MQTT client 'meter-7'", "3/s more arrive", "its pace is unknown"):
        assert words in full_text(finding)


def test_without_the_bytes_of_the_connection_it_is_unknown_which_it_is():
    """Slow or stuck: the reason names queue and client."""
    verdict = look(film(lambda t: frame(3 * int(t), sent=None, received=None), until=120))
    (gap,) = [each for each in verdict.inconclusive if each.reason == "mqtt_not_counted"]
    text = render_inconclusive(gap)

    assert [] == found(verdict)
    assert "slow-consumer" == gap.rule
    assert NAME in text.because
    assert "'meter-7'" in text.needs
    assert [] == [each for each in look(film(stuck, until=60)).inconclusive if each.reason == "mqtt_not_counted"]


@pytest.mark.parametrize("count", [2, 4, 300])
def test_many_sessions_without_a_client_are_one_finding(count):
    """Thousands of devices may sleep; the one that is away for longest is the subject."""

    def away(t):
        (queue,) = frame(5 * int(t), held=0, consumers=0)["queues"]
        present = (replace(queue, consumers=1, messages=0, messages_ready=0),)
        gone = [
            replace(queue if t >= 5 * place else present[0], name=NAME.replace("meter-7", f"valve-{place}"))
            for place in range(count)
        ]
        return {**frame(0, held=0), "queues": tuple(gone), "consumers": ()}

    finding = only(look(film(away, until=230)))

    assert "valve-0" == finding.facts["mqtt_client"]
    away_now = min(count, 45)
    assert away_now - 4 <= finding.facts["other_session_count"] + 1 <= away_now
    assert "Away as well: 'valve-1'" in full_text(finding)


def test_a_session_whose_client_went_away_is_named_by_its_client():
    """The queue tells the client id, because its connection is gone; another session is no misspelt name of it."""

    def away(t):
        made, other = frame(5 * int(t), held=0, consumers=0), frame(0, held=0)
        session = replace(other["queues"][0], name=NAME.replace("meter", "meters"))
        return {**other, "queues": (*made["queues"], session), "consumers": ()}

    finding = only(look(film(away, until=240)))

    assert ("no-consumer", "warning", NAME) == (finding.rule, finding.severity.value, finding.subject.name)
    assert ("meter-7",) == finding.involved.clients
    assert finding.facts["similar_queue"] is None
    for words in ("MQTT", "'meter-7'"):
        assert words in full_text(finding)
    assert "channel" not in str(text(finding).steps)
