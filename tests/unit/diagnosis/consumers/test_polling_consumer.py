import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.consumers.own import found, only
from tests.unit.diagnosis.pictures import channel, connection, film, look, queue, stats, told


def polled(rate=50.0, until=1e9):
    """A queue that is asked so many times a second, and has a message once a second."""

    def frame(t):
        asked = int(rate * min(t, until))
        counters = stats(publish=int(t), get_no_ack=int(t), get_empty=asked, deliver_get=int(t))
        return {
            "queues": (queue(consumers=0, stats=counters),),
            "channels": (channel(consumer_count=0, stats=stats(get_empty=asked)),),
            "connections": (connection(),),
        }

    return frame


def test_a_loop_of_basic_get_is_mentioned():
    """As information, with the client that does it."""
    finding = only(look(film(polled(), until=15)))

    assert ("polling-consumer", "info", "orders") == (finding.rule, finding.severity, finding.subject.name)
    assert "is polled by 'billing' 50 times a second for nothing" in finding.summary
    assert "basic.consume" in told(finding)


@pytest.mark.parametrize("frame", [polled(rate=5.0), polled(rate=0.0), polled(until=10)], ids=["rare", "none", "over"])
def test_few_questions_are_no_loop(frame):
    """A job that looks now and then is fine."""
    assert [] == found(look(film(frame, until=60)))


def test_one_look_is_enough():
    """Two readings eight seconds apart."""
    window = film(polled(), until=8, every=8)

    assert [("polling-consumer", "info", "orders")] == found(look(window, thresholds=Thresholds.one_shot()))
