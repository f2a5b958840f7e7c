"""Consumers that come and go, as the lists of a busy broker show them."""

import pytest

from tests.unit.diagnosis.consumers.results import urgent
from tests.unit.diagnosis.pictures import consumer, film, look, queue, stats


def coming_and_going(*, up, away, unknown, name="orders", tag=None, rate=5):
    """A consumer that works and is away in turn; for so many seconds after it has come, its channel is not known."""

    def frame(t):
        life, second = divmod(t, up + away)
        here = second < up
        delivered = int(rate * t) if here else int(rate * (life * (up + away) + up))
        client = f"10.0.0.9:{41000 + int(life)} -> 10.0.0.1:5672"
        fields = {"tag": tag or f"ctag{int(life)}", "channel_name": None, "connection_name": None}
        if second >= unknown:
            fields |= {"channel_name": f"{client} (1)", "connection_name": client}
        # What it holds when it ends is delivered again.
        again, sent = int(life), delivered + int(life)
        counted = stats(publish=int(rate * t), deliver=sent, deliver_get=sent, redeliver=again, ack=delivered)
        ready = int(rate * t) - delivered
        listed = (consumer(name, **fields),) if here else ()
        return {
            "queues": (queue(name, consumers=len(listed), messages_ready=ready, stats=counted),),
            "consumers": listed,
        }

    return frame


@pytest.mark.parametrize(("name", "tag", "rate"), [("orders", None, 5), ("a.b1", "worker", 0.6), ("Заказы", "t", 300)])
@pytest.mark.parametrize(("up", "away"), [(25, 15), (42, 13)])
def test_a_consumer_whose_channel_is_not_known_yet_is_no_other_one(up, away, name, tag, rate):
    """A busy broker lists it seconds before its channel, so that one restart looked like two."""
    frame = coming_and_going(up=up, away=away, unknown=3, name=name, tag=tag, rate=rate)

    results = [look(film(frame, until=until)) for until in range(60, 130, 5)]

    assert not [each for result in results for each in urgent(result) if each[0] == "consumer-flapping"]
