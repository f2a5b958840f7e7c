import pytest

from tests.unit.diagnosis.consumers.own import found, only
from tests.unit.diagnosis.pictures import PEER, channel, connection, consumer, film, look, queue, stats, stuck, told


def unread(*, pending=140_000, sent=lambda _: 9_000_000, consumes=True, ack_required=False, status=None):
    """A connection to which bytes wait, with a consumer of an empty quorum queue."""

    def frame(t):
        return {
            "queues": (queue(type="quorum", stats=stats(publish=400, deliver_no_ack=400)),),
            "consumers": (consumer(ack_required=ack_required, activity_status=status),) if consumes else (),
            "channels": (channel(),),
            "connections": (connection(send_pend=pending, send_oct=sent(t), peer_host="10.0.0.7", peer_port=50001),),
        }

    return frame


def ours(verdict):
    """Findings of this rule."""
    return [each for each in found(verdict) if each[0] == "consumer-tcp-backpressure"]


def test_a_client_that_does_not_read_is_found():
    """Bytes wait and none leaves, in three readings; its queue looks empty."""
    assert [("consumer-tcp-backpressure", "warning", PEER)] == ours(look(film(unread(), until=10)))

    (finding,) = [each for each in look(film(unread(), until=20)).findings if each.rule == "consumer-tcp-backpressure"]

    assert "'billing' at 10.0.0.7:50001 consumes from 'orders' and does not read its socket" in finding.summary
    assert "is lost when it goes" in finding.cause
    assert "api/connections/10.0.0.7" in told(finding)


@pytest.mark.parametrize(
    "frame",
    [
        unread(pending=0),
        unread(pending=None),
        unread(sent=lambda t: int(1000 * t)),
        unread(sent=lambda _: None),
        unread(consumes=False),
    ],
    ids=["nothing waits", "not told", "something leaves", "not told what leaves", "no consumer"],
)
def test_what_is_no_backpressure(frame):
    """A burst, a publisher, or figures that are absent."""
    assert [] == ours(look(film(frame, until=60)))


def test_the_word_of_the_queue_is_evidence():
    """From 4.2 on a classic queue calls such a consumer blocked."""
    window = film(unread(status="blocked"), until=20)

    assert "/api/consumers activity_status" in told(
        next(each for each in look(window).findings if each.rule == "consumer-tcp-backpressure")
    )


def test_a_stuck_consumer_of_that_connection_follows_from_it():
    """One cause, one finding."""
    window = film(lambda t: stuck(t, through={"send_pend": 140_000, "send_oct": 5_000}), until=90)

    finding = only(look(window))

    assert "consumer-tcp-backpressure" == finding.rule
    assert ["stuck-consumer"] == [each.rule for each in finding.consequences if each.rule == "stuck-consumer"]
