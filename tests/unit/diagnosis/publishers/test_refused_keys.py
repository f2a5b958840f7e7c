"""A client some of whose publishes are refused: the broker confirms the others, and closes the channel."""

import pytest

from tests.unit.diagnosis.clients.loops import churning, looping, turns
from tests.unit.diagnosis.pictures import PEER, connection, film, full_text, look, stats
from tests.unit.diagnosis.publishers.films import exchange, facts, findings, of

REFUSED, CHURN = "pub-access-refused", "channel-churn"


def topic_refused(key, word="write "):
    """The text of 4.x; that of 3.10 does not name the access."""
    return f"ACCESS_REFUSED - {word}access to topic '{key}' in exchange 'events' in vhost '/' refused for user 'guest'"


def partly(text, *, accepted=4, rate=1.9, confirms=True, closed=None, names=("events", "amq.topic"), **more):
    """On each channel the broker confirms so many publishes, and then closes it with this text.

    Args:
        text: the error; "" if the client closes the channel itself.
        accepted: messages that are accepted on each channel.
        rate: channels a second.
        confirms: whether the channel is in confirm mode.
        closed: bytes with which the broker ends a channel; by default those of the text.
        names: topic exchanges; the first one receives the messages that are accepted.
        **more: counters of the cluster, per cycle.
    """
    sent = 16 + (19 + len(text) if closed is None else closed) + (12 + 21 * accepted if confirms else 0)
    packets = 2 + (1 + accepted if confirms else 0)

    def frame(t):
        done = turns(t, rate, 0.0)
        counts = {name: int(each * done) for name, each in more.items()}
        made = looping(t, rate=rate, sent=sent, packets=packets, received=80 + 90 * accepted)
        counters = stats(
            publish=1000 + accepted * done,
            deliver_get=int(10 * t) + counts.get("deliver_get", 0),
            ack=int(10 * t) + counts.get("ack", 0),
        )
        received = [accepted * done + 1] + [0] * len(names)
        known = [exchange(name, type="topic", received=n) for name, n in zip(names, received, strict=False)]
        return {
            **made,
            "overview": churning(t, channels=done, declares=counts.get("declares", 0), stats=counters),
            "exchanges": (exchange(""), *known),
        }

    return frame


@pytest.mark.parametrize("key", ["us.sale", "k", "plant.7.a-rather-long-name-of-a-device"])
@pytest.mark.parametrize(("accepted", "rate"), [(4, 1.9), (1, 6.0), (19, 0.8), (60, 0.6)])
@pytest.mark.parametrize("confirms", [True, False])
def test_a_refused_routing_key_among_accepted_ones(key, accepted, rate, confirms):
    """Its confirms are subtracted from the bytes, so the length of the error is known."""
    frame = partly(topic_refused(key), accepted=accepted, rate=rate, confirms=confirms)
    verdict = look(film(frame, until=90))

    assert [("warning", "connection", PEER)] == of(verdict, REFUSED)
    assert {"topic": True, "refused_exchanges": ["events"], "error_bytes": len(topic_refused(key))} == {
        name: facts(verdict, REFUSED)[name] for name in ("topic", "refused_exchanges", "error_bytes")
    }
    assert accepted == pytest.approx(facts(verdict, REFUSED)["accepted_per_channel"], rel=0.1)
    (finding,) = findings(verdict, REFUSED)
    for words in ("some of its routing keys", "each refused publish", "list_user_topic_permissions guest"):
        assert words in full_text(finding)
    assert CHURN not in [each.rule for each in verdict.findings]


def test_an_exchange_that_the_user_may_not_write_beside_others():
    """The length is that of a refusal of an exchange that exists."""
    text = "ACCESS_REFUSED - write access to exchange 'audit.log' in vhost '/' refused for user 'guest'"
    verdict = look(film(partly(text, names=("audit.log", "events")), until=90))

    assert [("warning", "connection", PEER)] == of(verdict, REFUSED)
    assert (False, ["audit.log"]) == tuple(facts(verdict, REFUSED)[name] for name in ("topic", "refused_exchanges"))


@pytest.mark.parametrize(
    "frame",
    [
        # The client opens a channel for each batch, and closes it.
        partly("", closed=12),
        partly("", closed=12, accepted=20),
        # It consumes and acknowledges on these channels, too: the bytes may be those of deliveries.
        partly(topic_refused("us.sale"), deliver_get=1, ack=1),
        partly(topic_refused("us.sale"), declares=1),
        # Another error: one of its exchanges does not exist.
        partly("NOT_FOUND - no exchange 'nope' in vhost '/'"),
        partly("PRECONDITION_FAILED - unknown delivery tag 99"),
        partly(topic_refused("us.sale"), names=("x" * 120,)),
    ],
    ids=["batches", "large batches", "consumes", "declares", "missing", "acknowledges", "name too long"],
)
def test_other_loops_of_a_publisher_are_not_a_refused_key(frame):
    """Each differs in one thing."""
    assert [] == of(look(film(frame, until=90)), REFUSED)


def test_the_broker_is_known_to_close_the_channels():
    """The error is none of a permission; who closes the channels is known all the same."""
    verdict = look(film(partly("NOT_FOUND - no exchange 'nope' in vhost '/'"), until=60))

    assert facts(verdict, CHURN)["by_broker"]
    assert ["publish"] == facts(verdict, CHURN)["activities"]


@pytest.mark.parametrize(
    ("protocol", "channels"), [("MQTT 3-1-1", None), ("Web MQTT 5-0", None), ("AMQP 1-0", 1), ("stream", 0)]
)
def test_clients_that_never_have_a_channel_do_not_loop(protocol, channels):
    """They publish, and get as many packets as a loop."""
    own = partly(topic_refused("us.sale"))

    def frame(t):
        done = int(15 * t)
        figures = {"send_cnt": 9 + done, "send_oct": 50 + 4 * done, "recv_cnt": 9 + done, "recv_oct": 50 + 22 * done}
        other = connection("10.0.0.5:5 -> 10.0.0.1:1883", protocol=protocol, channels=channels, **figures)
        made = own(t)
        return {**made, "connections": (*made["connections"], other)}

    verdict = look(film(frame, until=90))

    assert ([("warning", "connection", PEER)], []) == (of(verdict, REFUSED), of(verdict, CHURN)[1:])
