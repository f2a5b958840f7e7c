"""A queue got until the loss began what its exchange loses now: so the messages were meant for it."""

import pytest

from ackscope.snapshot import Part
from ackscope.topology import Binding, Bindings
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import consumer, film, look, queue, snapshot, stats, text
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
    result = look(film(changed(**fields), until=BEGAN + 105))

    assert [("info", "exchange", "alerts")] == of(result, DROPPED)
    assert [] == findings(result, DROPPED)[0].facts["fed"]
