"""Consumers that use the stream protocol: judged by their offsets."""

import pytest

from ackscope.snapshot import Node
from ackscope.streams import StreamClients, StreamConsumer
from diagnosis.text import render_inconclusive
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.consumers.results import found, only
from tests.unit.diagnosis.pictures import NODE, PEER, WALL, connection, consumer, film, full_text, look, queue, stats

RULES = ("stuck-consumer", "slow-consumer")


def frame(sent, published, *, credit=1, listed=True, age=0.0, **fields):
    """A stream with one reader that was sent so many messages of those published."""
    reader = StreamConsumer(
        connection_name=PEER, subscription=0, vhost="/", queue="events", consumed=sent, offset=sent,
        offset_lag=published - sent, credit=credit, **fields,
    )  # fmt: skip
    reported_by_plugin = {"subscription": 0, "offset_lag": published - sent} if listed else {}
    return {
        "nodes": (Node(name=NODE, running=True, plugins=("rabbitmq_stream",)),),
        "queues": (queue("events", type="stream", messages_ready=published, stats=stats()),),
        "consumers": (
            consumer("events", tag="stream.subid-0", channel_name=None, prefetch_count=None, ack_required=None,
                     **reported_by_plugin),
        ),
        "connections": (connection(client_name="billing", protocol="stream", channels=0, connected_at=WALL - age),),
        "streams": StreamClients(consumers=(reader,), publishers=()) if listed else StreamClients(),
    }  # fmt: skip


def mine(verdict):
    """The findings of the two rules."""
    return [each for each in found(verdict) if each[0] in RULES]


def stopped(t):
    """It reads for a minute, then no more; ten a second are published."""
    return frame(10 * min(int(t), 60), 10 * int(t))


def test_a_reader_that_stops_is_named():
    """The stream keeps the messages, so it is a warning."""
    verdict = look(film(stopped, until=120))
    finding = only(verdict)

    assert ("stuck-consumer", "warning", "events") == (finding.rule, finding.severity.value, finding.subject.name)
    assert ("billing",) == finding.involved.clients
    assert {"lag": 600, "amqp10": False, "mqtt": False, "unacked": 0} == {
        key: finding.facts[key] for key in ("lag", "amqp10", "mqtt", "unacked")
    }
    for words in (
        "reader has stopped",
        "'billing' is 600 messages from the end",
        "sent 600 so far",
        "credit for 1 chunk",
    ):
        assert words in full_text(finding)
    assert "acknowledg" not in full_text(finding)


def test_a_reader_that_never_read_is_judged_by_the_age_of_its_connection():
    """One look of ten seconds."""
    window = film(lambda t: frame(0, 5000 + 10 * int(t), age=300), until=10, every=5)
    assert [("stuck-consumer", "warning", "events")] == mine(look(window, thresholds=Thresholds.brief()))


@pytest.mark.parametrize(
    "calm",
    [
        lambda t: frame(10 * int(t), 10 * int(t)),
        # At the end, and nothing is published.
        lambda t: frame(500, 500),
        # Far behind, and nothing is published: it may have read all that it wanted.
        lambda t: frame(500, 900),
        # A replay: it gets nearer.
        lambda t: frame(20 * int(t), 9000 + 10 * int(t)),
        # A chunk every 50 s.
        lambda t: frame(500 * int(t / 50), 500 + 10 * int(t)),
        # The standby of a group.
        lambda t: frame(0, 10 * int(t), active=False),
        # The alarm explains it.
    ],
    ids=["keeps up", "idle", "done", "replay", "large chunks", "standby"],
)
def test_readers_that_are_not_stuck(calm):
    """Neither stuck nor slow."""
    assert [] == [each for each in mine(look(film(calm, until=170))) if each[1] != "info"]


def test_a_slow_reader_is_named_with_its_pace():
    """It reads five a second of twenty."""
    verdict = look(film(lambda t: frame(5 * int(t), 2000 + 20 * int(t)), until=200))
    finding = only(verdict)

    assert ("slow-consumer", "warning", "events") == (finding.rule, finding.severity.value, finding.subject.name)
    assert ("billing",) == finding.involved.clients
    assert 5 == pytest.approx(finding.facts["ack_rate"], rel=0.1)
    assert 20 == pytest.approx(finding.facts["publish_rate"], rel=0.1)
    for words in ("reader 'billing' falls", "It reads 5/s", "20/s are published", "from the end"):
        assert words in full_text(finding)


def test_readers_that_are_not_listed_are_reported():
    """The plugin is off: the broker lists the consumer, and nothing of its offset."""
    verdict = look(film(lambda t: frame(0, 10 * int(t), listed=False, age=60), until=60))
    gaps = [each for each in verdict.inconclusive if each.reason == "readers_not_listed"]

    assert {*RULES, "stream-retention-loss"} == {each.rule for each in gaps}
    assert [] == mine(verdict)
    text = render_inconclusive(gaps[0])
    assert "'events' in vhost '/'" in text.because
    assert "rabbitmq-plugins enable rabbitmq_stream_management" in text.needs


def test_a_connection_of_a_stream_is_not_idle_for_want_of_channels():
    """It never has any, so it is not the former consumer of a queue that lost its own."""

    def lost(t):
        made = frame(10 * int(t), 10 * int(t))
        return {**made, "queues": (*made["queues"], queue("orders", messages_ready=int(t), consumers=0))}

    finding = next(each for each in look(film(lost, until=60)).findings if each.subject.name == "orders")

    assert ("no-consumer", []) == (finding.rule, finding.facts["idle_connections"])
