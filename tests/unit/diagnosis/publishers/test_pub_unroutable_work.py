"""An exchange loses some keys or headers from the first message on: what shows that they were meant for a queue."""

import pytest

from ackscope.topology import Binding, Bindings
from tests.unit.diagnosis.pictures import WALL, film, look, queue, stats, text
from tests.unit.diagnosis.publishers.films import exchange, facts, findings, of, publisher, shop

DROPPED, RETURNED = "pub-unroutable-dropped", "pub-unroutable-returned"


def keyed(
    *,
    rate=10.0,
    share=0.4,
    queues=None,
    confirm=False,
    counter="drop_unroutable",
    name="dispatch",
    to=("parcels", "letters"),
    more=(),
    **fields,
):
    """A publisher sends several keys to an exchange, whose queues take all of them but one; nobody saw that one routed.

    `share` of its messages have that key; `queues` are arguments of the bound queues, and `more` other bindings.
    """

    def frame(t):
        sent = int(rate * t)
        lost = int(share * sent)
        each = (sent - lost) // len(to)
        made = {"stats": stats(publish=each, deliver=each, ack=each), **(queues or {})}
        bound = [
            Binding(vhost="/", source=name, destination=each, destination_type="queue", routing_key=each) for each in to
        ]
        counters = {counter: lost} if lost else {}
        return {
            "queues": tuple(queue(each, **made) for each in to),
            "channels": (publisher(t, rate=rate, before=0, counters=counters, confirm=confirm),),
            "connections": (shop(connected_at=WALL, client_name="depot"),),
            "exchanges": (exchange(name, received=sent, routed=sent - lost, **fields),),
            "bindings": Bindings(counts={}, listed=(*bound, *more)),
        }

    return frame


@pytest.mark.parametrize("rate", [3.0, 40.0, 700.0])
@pytest.mark.parametrize("share", [0.08, 0.4, 0.47])
@pytest.mark.parametrize("kind", ["direct", "headers"])
def test_a_key_that_never_had_a_queue_is_a_warning_after_a_minute(rate, share, kind):
    """Information before: the application with its queue may only start later."""
    frame = keyed(rate=rate, share=share, type=kind)

    assert [("info", "exchange", "dispatch")] == of(look(film(frame, until=45)), DROPPED)
    verdict = look(film(frame, until=80))
    assert [("warning", "exchange", "dispatch")] == of(verdict, DROPPED)
    assert (60.0, ["letters", "parcels"]) == tuple(
        facts(verdict, DROPPED)[key] for key in ("warning_after_seconds", "work_queues")
    )
    said = text(findings(verdict, DROPPED)[0])
    assert "('letters', 'parcels') last, and other messages of 'depot'" in said.cause
    assert ("key" in said.cause, "header" in said.cause) == (kind == "direct", kind == "headers")


@pytest.mark.parametrize(("confirm", "severity"), [(True, "warning"), (False, "info")])
def test_a_publisher_with_confirms_wants_to_know_where_its_messages_are(confirm, severity):
    """One without them, most of whose messages nobody takes, may write a log, and somebody wants its errors."""
    verdict = look(film(keyed(share=0.8, confirm=confirm), until=200))

    assert [(severity, "exchange", "dispatch")] == of(verdict, DROPPED)


@pytest.mark.parametrize(
    "fields",
    [
        {"queues": {"exclusive": True}},
        {"queues": {"auto_delete": True}},
        {"queues": {"durable": False}},
        {"queues": {"arguments": {"x-expires": 60_000}}},
        {"to": ("amq.gen-4711",)},
        {"durable": False},
        {"share": 0.02},
        {"rate": 0.2},
        {
            "more": (
                Binding(vhost="/", source="dispatch", destination="any", destination_type="exchange", routing_key="x"),
            )
        },
        {
            "more": (
                Binding(vhost="/", source="dispatch", destination="gone", destination_type="queue", routing_key="x"),
            )
        },
    ],
    ids=["exclusive", "auto-delete", "transient", "expires", "named", "exchange", "few", "slow", "onward", "unlisted"],
)
@pytest.mark.parametrize("kind", ["direct", "headers"])
def test_keys_that_somebody_may_or_may_not_bind_stay_information(fields, kind):
    """Subscribers bind queues of their own, few messages may be answers, and another exchange may be behind."""
    verdict = look(film(keyed(**{"type": kind, **fields}), until=250))

    assert {"info"} >= {severity for severity, *_ in of(verdict, DROPPED)}


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("topic", "a binding is missing, or nobody has to get messages with these routing keys"),
        ("fanout", "no queue was bound to it for a part of the time, or nobody has to get these messages"),
    ],
)
def test_a_part_is_explained_by_what_the_exchange_compares(kind, words):
    """A fanout exchange has no keys."""
    (finding,) = findings(look(film(keyed(type=kind), until=200)), DROPPED)

    assert f"it routes the others, so {words}" in text(finding).summary


@pytest.mark.parametrize("kind", ["topic", "fanout"])
def test_events_of_which_somebody_takes_a_part_stay_information(kind):
    """Nobody has to subscribe to them."""
    assert [("info", "exchange", "dispatch")] == of(look(film(keyed(type=kind), until=700)), DROPPED)


def test_a_part_that_comes_back_is_the_matter_of_its_publisher():
    """It sets the flag mandatory; that rule has its own times."""
    verdict = look(film(keyed(counter="return_unroutable"), until=200))

    assert [] == of(verdict, DROPPED)
    assert [("info", "exchange", "dispatch")] == of(verdict, RETURNED)


def test_the_default_exchange_may_lose_replies():
    """Their names are those of queues that come and go."""
    assert "warning" not in {severity for severity, *_ in of(look(film(keyed(name=""), until=200)), DROPPED)}
