import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.consumers.results import found, only
from tests.unit.diagnosis.pictures import CHANNEL, channel, connection, film, look, queue, stats


def polled(rate=50.0, until=1e9):
    """Return a film of a queue that is polled this many times per second and has one message per second."""

    def frame(t):
        polls = int(rate * min(t, until))
        counters = stats(publish=int(t), get_no_ack=int(t), get_empty=polls, deliver_get=int(t))
        return {
            "queues": (queue(consumers=0, stats=counters),),
            "channels": (channel(consumer_count=0, stats=stats(get_empty=polls)),),
            "connections": (connection(),),
        }

    return frame


def test_a_loop_of_basic_get_is_information():
    """With the client that polls."""
    finding = only(look(film(polled(), until=15)))

    assert ("polling-consumer", "info", "orders") == (finding.rule, finding.severity, finding.subject.name)
    assert (50.0, ["billing"]) == (finding.facts["empty_poll_rate"], finding.facts["clients"])
    assert ((CHANNEL,), ("billing",)) == (finding.involved.channels, finding.involved.clients)


@pytest.mark.parametrize("frame", [polled(rate=5.0), polled(rate=0.0), polled(until=10)], ids=["rare", "none", "over"])
def test_few_polls_are_no_loop(frame):
    """A job that polls now and then is fine."""
    assert [] == found(look(film(frame, until=60)))


def test_a_single_look_is_enough():
    """Two readings 8 s apart."""
    window = film(polled(), until=8, every=8)

    assert [("polling-consumer", "info", "orders")] == found(look(window, thresholds=Thresholds.as_if_lasting()))
