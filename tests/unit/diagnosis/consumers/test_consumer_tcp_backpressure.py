import pytest

from tests.unit.diagnosis.consumers.results import found, only
from tests.unit.diagnosis.pictures import (
    PEER,
    channel,
    connection,
    consumer,
    evidence,
    film,
    look,
    queue,
    stats,
    stuck,
    text,
)


def unread(*, pending=140_000, sent=lambda _: 9_000_000, consumes=True, ack_required=False, status=None):
    """A connection with unsent bytes, and a consumer of an empty quorum queue."""

    def frame(t):
        return {
            "queues": (queue(type="quorum", stats=stats(publish=400, deliver_no_ack=400)),),
            "consumers": (consumer(ack_required=ack_required, activity_status=status),) if consumes else (),
            "channels": (channel(),),
            "connections": (connection(send_pend=pending, send_oct=sent(t), peer_host="10.0.0.7", peer_port=50001),),
        }

    return frame


def of_rule(result):
    """Findings of this rule."""
    return [each for each in found(result) if each[0] == "consumer-tcp-backpressure"]


def test_a_client_that_does_not_read_is_found():
    """In three readings bytes are waiting and none is sent; its queue looks empty."""
    assert [("consumer-tcp-backpressure", "warning", PEER)] == of_rule(look(film(unread(), until=10)))

    (finding,) = [each for each in look(film(unread(), until=20)).findings if each.rule == "consumer-tcp-backpressure"]

    assert ("billing", "10.0.0.7:50001", ["orders"], 140_000, True) == tuple(
        finding.facts[key] for key in ("client", "peer", "queues", "unsent_bytes", "auto_ack")
    )
    assert (PEER,) == finding.involved.connections
    assert "lost when the client dies" in text(finding).cause


@pytest.mark.parametrize(
    "frame",
    [
        unread(pending=0),
        unread(pending=None),
        unread(sent=lambda t: int(1000 * t)),
        unread(sent=lambda _: None),
        unread(consumes=False),
    ],
    ids=["nothing waits", "not reported", "bytes are sent", "bytes not reported", "no consumer"],
)
def test_what_is_no_backpressure(frame):
    """A burst, a publisher, or absent numbers."""
    assert [] == of_rule(look(film(frame, until=60)))


def test_the_status_that_the_queue_reports_is_evidence():
    """From 4.2 on a classic queue reports such a consumer as blocked."""
    window = film(unread(status="blocked"), until=20)

    finding = next(each for each in look(window).findings if each.rule == "consumer-tcp-backpressure")

    assert "blocked" == evidence(finding, "status").value


def test_a_stuck_consumer_of_that_connection_is_a_consequence():
    """One cause, one finding."""
    window = film(lambda t: stuck(t, through={"send_pend": 140_000, "send_oct": 5_000}), until=90)

    finding = only(look(window))

    assert "consumer-tcp-backpressure" == finding.rule
    assert ["stuck-consumer"] == [each.rule for each in finding.consequences if each.rule == "stuck-consumer"]
