"""A consumer that publishes to an exchange which is called after its queue, and to which nothing is bound."""

import pytest

from ackscope.topology import Bindings
from tests.unit.diagnosis.pictures import consumer, film, look, queue, stats, text
from tests.unit.diagnosis.publishers.films import PEER, exchange, findings, of, publisher, shop

RULE = "pub-unroutable-dropped"


def failing(t, *, work="seat.reserve", to="seat.reserve_error", rate=2.8, kind="fanout", consumes=True):
    """A client takes messages from a queue, and publishes some of them to an exchange without bindings."""
    lost, done = int(rate * t), int(8 * t)
    counters = stats(publish=done, deliver=done, ack=done)
    tag = consumer(work if consumes else "others", connection_name=PEER, channel_name=f"{PEER} (1)")
    return {
        "queues": (queue(work, stats=counters), queue("others", stats=counters)),
        "channels": (publisher(t, rate=rate, before=0, counters={"drop_unroutable": lost}),),
        "connections": (shop(),),
        "consumers": (tag,),
        "exchanges": (exchange(to, received=lost, type=kind),),
        "bindings": Bindings(listed=()),
    }


@pytest.mark.parametrize("kind", ["fanout", "topic"])
@pytest.mark.parametrize(
    ("work", "to", "rate"),
    [
        ("seat.reserve", "seat.reserve_error", 2.8),
        ("billing", "billing.failed", 0.6),
        ("mail-out", "mail-out-dlx", 40.0),
        ("q1", "q1:parked", 7.0),
    ],
)
def test_what_a_consumer_moves_aside_and_nobody_gets_is_a_warning_after_a_minute(work, to, rate, kind):
    """The finding says that the name decides."""
    frame = lambda t: failing(t, work=work, to=to, rate=rate, kind=kind)  # noqa: E731
    verdict = look(film(frame, until=120))
    (finding,) = findings(verdict, RULE)

    assert [("info", "exchange", to)] == of(look(film(frame, until=50)), RULE)
    assert [("warning", "exchange", to)] == of(verdict, RULE)
    assert [work] == finding.facts["moved_aside"]
    assert "Nothing but the name" in text(finding).cause
    assert "harmless" not in text(finding).summary


@pytest.mark.parametrize(
    "other",
    [
        {"to": "seat.events"},
        {"to": "seat.reserve"},
        {"to": "seat.reserved"},
        {"to": "x.seat.reserve"},
        {"consumes": False},
    ],
    ids=["another name", "the same name", "no word of its own", "a word before", "does not consume from it"],
)
def test_events_that_nobody_needs_stay_information(other):
    """Each differs in one thing."""
    assert ["info"] == [severity for severity, _, _ in of(look(film(lambda t: failing(t, **other), until=200)), RULE)]
