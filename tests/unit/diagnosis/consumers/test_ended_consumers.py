"""Consumers that end before they acknowledge all that they were sent, and reconnect too soon to be listed."""

import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.clients.loops import churning
from tests.unit.diagnosis.consumers.results import ever, found
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, stats, text

STAYS = "10.0.0.9:41000 -> 10.0.0.1:5672"


def reconnecting(*, returned=20, acked=20, cycle=1.5, name="belege.ein", kind="classic", until=1e9):
    """A client that is never listed: in each cycle it acknowledges some messages and returns others by its end."""

    def frame(t):
        cycles = int(min(t, until) / cycle)
        done, again = acked * cycles, returned * cycles
        total = stats(publish=done + 40, deliver=done + again, deliver_get=done + again, redeliver=again, ack=done)
        return {
            "overview": churning(t, channels=cycles, connections=cycles),
            "queues": (queue(name, type=kind, consumers=cycles % 2, messages_ready=40, stats=total),),
            "consumers": (),
            "channels": (),
            "connections": (),
        }

    return frame


def beside(frame, *, sent, acked, queues=("belege.ein",)):
    """Add a consumer whose channel lasts, and that is sent and acknowledges so many messages per second."""

    def both(t):
        picture = frame(t)
        counters = stats(deliver=int(sent * t), deliver_get=int(sent * t), ack=int(acked * t))
        return picture | {
            "consumers": tuple(
                consumer(each, tag=each, channel_name=f"{STAYS} (1)", connection_name=STAYS) for each in queues
            ),
            "channels": (channel(f"{STAYS} (1)", stats=counters),),
            "connections": (connection(STAYS, client_name="steady"),),
        }

    return both


def flapping(result):
    """Findings about consumers that end."""
    return [each for each in result.findings if each.rule == "consumer-flapping"]


@pytest.mark.parametrize(
    ("returned", "acked", "cycle", "name", "kind"),
    [
        (20, 20, 1.5, "belege.ein", "classic"),
        (9, 20, 0.8, "orders", "quorum"),
        (60, 40, 6.0, "Заказы", "classic"),
        (40, 35, 2.5, "q", "quorum"),
    ],
)
def test_messages_that_ended_consumers_return_are_said_although_the_queue_makes_progress(
    returned, acked, cycle, name, kind
):
    """Nobody is listed, and each message is acknowledged in the end."""
    frame = reconnecting(returned=returned, acked=acked, cycle=cycle, name=name, kind=kind)
    (early,) = flapping(look(film(frame, until=55)))
    (finding,) = flapping(look(film(frame, until=120)))

    assert ("info", "warning", name) == (early.severity, finding.severity, finding.subject.name)
    assert (returned / (returned + acked)) == pytest.approx(
        finding.facts["redelivered"] / finding.facts["delivered"], rel=0.1
    )
    assert "came back and were delivered again" in text(finding).summary
    assert "406" in text(finding).cause
    assert "requeue-loop" not in ever([look(film(frame, until=120))])


def test_one_look_knows_it_if_it_lasts():
    """Two readings that have the loop; `diagnosis/brief.py` makes it information."""
    result = look(film(reconnecting(cycle=0.8), 98, 8.0, 90.0), thresholds=Thresholds.as_if_lasting())

    assert [("warning", "belege.ein")] == [(each.severity, each.subject.name) for each in flapping(result)]


def test_a_consumer_that_stays_and_acknowledges_is_no_excuse():
    """It gets the messages that others return."""
    frame = beside(reconnecting(), sent=12.0, acked=12.0)
    (finding,) = flapping(look(film(frame, until=120)))

    assert "warning" == finding.severity


def test_a_consumer_that_came_and_stays_is_not_named():
    """A worker was started while others already reconnected."""
    frame = beside(reconnecting(), sent=12.0, acked=12.0)
    (finding,) = flapping(look(film(lambda t: frame(t) if t >= 100 else reconnecting()(t), until=120)))

    assert ([], ()) == (finding.facts["clients"], finding.involved.clients)


@pytest.mark.parametrize(
    "frame",
    [
        beside(reconnecting(), sent=20.0, acked=5.0),
        beside(reconnecting(), sent=12.0, acked=12.0, queues=("belege.ein", "other")),
        reconnecting(returned=4, acked=20),
        reconnecting(until=20.0),
        reconnecting(kind="stream"),
        lambda t: reconnecting()(t) | {"overview": churning(t, channels=0, connections=0)},
        lambda t: (
            reconnecting()(t)
            | {"channels": (channel("m (1)", consumer_count=0, stats=stats(get=int(20 * t), redeliver=int(10 * t))),)}
        ),
    ],
    ids=[
        "a lasting consumer returns as many",
        "a lasting consumer serves another queue, so it is not known what it returned",
        "few come back",
        "it is over",
        "a stream is read again",
        "nothing opens or closes",
        "a client polls and puts back",
    ],
)
def test_other_reasons_for_redeliveries_are_no_ended_consumers(frame):
    """The finding needs redeliveries that nobody who stays explains."""
    assert "consumer-flapping" not in {rule for rule, _, _ in found(look(film(frame, until=120)))}


def test_the_connections_of_clients_that_no_list_has_are_a_consequence():
    """They come and go in the cluster, and nothing else explains them."""
    (finding,) = look(film(reconnecting(cycle=0.8), until=120)).findings

    assert ("consumer-flapping", ["connection-churn"]) == (finding.rule, [each.rule for each in finding.consequences])
