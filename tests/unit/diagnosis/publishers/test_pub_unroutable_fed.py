"""A queue got until the loss began what its exchange loses now: so the messages were meant for it."""

from dataclasses import replace

import pytest

from ackscope.snapshot import Part
from ackscope.topology import Binding, Bindings
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import WALL, consumer, film, look, queue, snapshot, stats, text
from tests.unit.diagnosis.publishers.films import exchange, findings, of, publisher, shop

DROPPED, BEGAN = "pub-unroutable-dropped", 60.0


def changed(*, kind="headers", rate=2.0, others=6.0, stops=BEGAN, fed=None, name="срочно", bound="alerts", read=15.0):
    """From second 60 on a part of the messages has other headers or keys; until then queue `name` got them.

    `fed` is the rate of that queue where it is another one, `stops` when it got the last message.
    """

    def frame(t):
        at = t - t % read
        lost, lost_read = int(rate * max(0.0, t - BEGAN)), int(rate * max(0.0, at - BEGAN))
        received = int(500 + (rate + others) * at)
        came, rest = int(100 + (fed or rate) * min(t, stops)), int(400 + others * t)
        part = exchange("alerts", received=received, routed=received - lost_read, type=kind)
        bindings = (
            Binding(vhost="/", source=bound, destination=name, destination_type="queue", routing_key=""),
            Binding(vhost="/", source="alerts", destination="all", destination_type="queue", routing_key=""),
        )
        return {
            "queues": (
                queue(name, stats=stats(publish=came, deliver=came, ack=came)),
                queue("all", stats=stats(publish=rest, deliver=rest, ack=rest)),
            ),
            "consumers": (consumer(name),),
            "channels": (publisher(t, rate=rate + others, counters={"drop_unroutable": lost} if lost else {}),),
            "connections": (shop(),),
            "bindings": Bindings(listed=bindings),
            "exchanges": Part(value=(part,), at=snapshot(at).taken, seconds=0.1),
        }

    return frame


@pytest.mark.parametrize("kind", ["headers", "topic", "direct"])
@pytest.mark.parametrize(("rate", "others", "name"), [(2.0, 6.0, "срочно"), (30.0, 5.0, "q.1"), (0.5, 90.0, "rare")])
def test_what_a_queue_got_until_then_is_a_warning_after_a_minute(kind, rate, others, name):
    """Whatever its type, nobody says that it is harmless."""
    shots = [
        look(film(changed(kind=kind, rate=rate, others=others, name=name), until=BEGAN + more)) for more in (45, 105)
    ]

    if rate / (rate + others) < Thresholds().publishers.unroutable_share:
        assert [("info", "exchange", "alerts")] == of(shots[1], DROPPED)
        return
    assert [("info", "exchange", "alerts")] == of(shots[0], DROPPED)
    assert [("warning", "exchange", "alerts")] == of(shots[1], DROPPED)
    (finding,) = findings(shots[1], DROPPED)
    assert [name] == finding.facts["fed"]
    assert rate == pytest.approx(finding.facts["fed_rate"], rel=0.3)
    assert "harmless" not in text(finding).summary
    assert f"'{name}'" in text(finding).cause


@pytest.mark.parametrize(
    "fields",
    [{"stops": 1e9}, {"stops": 10.0}, {"fed": 9.0}, {"bound": "other"}],
    ids=["goes on", "stopped long before", "got far more", "bound to another exchange"],
)
def test_a_queue_that_did_not_get_them_shows_nothing(fields):
    """Events to which nobody has subscribed yet begin at some time."""
    result = look(film(changed(**{"kind": "topic", **fields}), until=BEGAN + 105))

    assert [("info", "exchange", "alerts")] == of(result, DROPPED)
    assert [] == findings(result, DROPPED)[0].facts["fed"]


def keyed(t, *, lost_before=80, rate=2.0, got=None, bound=True, consumers=1, flows=0.0, routes=37):
    """All messages of a channel miss a key, in one look; a queue got what it had routed before.

    Args:
        t: second of the film.
        lost_before: messages that were lost before the film.
        rate: messages a second that are lost.
        got: messages of the queue; None for as many as were routed.
        bound: whether the queue is bound to the exchange.
        consumers: of the queue.
        flows: messages a second that the queue gets.
        routes: messages of the channel that were routed.
    """
    lost, rest = lost_before + int(rate * t), int(900 + 6 * t)
    got = (routes if got is None else got) + int(flows * t)
    part = exchange("oms", received=routes + lost + rest, routed=routes + rest, type="topic")
    wrong = publisher(t, rate=rate, before=routes + lost_before, counters={"drop_unroutable": lost})
    listed = [
        Binding(vhost="/", source="oms", destination="all", destination_type="queue", routing_key="order.created")
    ]
    if bound:
        listed.append(replace(listed[0], destination="oms.cancel", routing_key="order.cancelled"))
    return {
        "queues": (
            queue("oms.cancel", consumers=consumers, stats=stats(publish=got)),
            queue("all", stats=stats(publish=rest)),
        ),
        "channels": (wrong,),
        "connections": (shop(connected_at=WALL - 900),),
        "bindings": Bindings(listed=tuple(listed)),
        "exchanges": (part,),
    }


@pytest.mark.parametrize(
    ("lost", "routes", "severity"), [(400, 37, "warning"), (400, 2000, "warning"), (20, 37, "info")]
)
def test_one_look_shows_a_queue_that_got_just_what_a_channel_had_routed(lost, routes, severity):
    """Both have counted since the channel was opened; the loss has lasted as long as its rate explains."""
    (finding,) = findings(look(film(lambda t: keyed(t, lost_before=lost, routes=routes), until=10)), DROPPED)

    assert (severity, ["oms.cancel"]) == (finding.severity, finding.facts["fed"])
    assert "harmless" not in text(finding).summary
    assert "got just as many messages as these clients had routed" in text(finding).cause


@pytest.mark.parametrize(
    "fields",
    [{"got": 39}, {"bound": False}, {"consumers": 0}, {"flows": 1.0}, {"routes": 4}],
    ids=["another number", "another exchange", "nobody waits", "it gets messages", "too few to tell"],
)
def test_a_queue_whose_count_says_nothing_is_not_named(fields):
    """It may be a coincidence; events may need no subscriber."""
    (finding,) = findings(look(film(lambda t: keyed(t, lost_before=400, **fields), until=10)), DROPPED)

    assert ("info", []) == (finding.severity, finding.facts["fed"])
    assert "it routes the others" in text(finding).summary
