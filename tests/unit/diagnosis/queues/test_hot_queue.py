import pytest

from tests.unit.diagnosis.pictures import channel, connection, film, look, queue, stats
from tests.unit.diagnosis.queues.films import flowing, frame, of, one

RULE = "hot-queue"


def picture(t, *, rate=5000.0, flow=True, other=10.0, **fields):
    """One queue with 5000 messages a second in and out, another with few, and a publisher that is held back."""
    counters = stats(publish=int(rate * t), ack=int(rate * t), deliver=int(rate * t), deliver_get=int(rate * t))
    hot = queue("hot", **{"stats": counters, "messages_unacked": 500, **fields})
    state = "flow" if flow is True or (flow and int(t) % flow == 0) else "running"
    publisher = channel(state=state, stats=counters)
    made = frame(hot, flowing(t, published=other, taken=other))
    return {**made, "connections": (connection(),), "channels": (publisher,)}


def shot(until, **fields):
    """The verdict after so many seconds."""
    return look(film(lambda t: picture(t, **fields), until=until))


def test_it_is_told_early_and_is_a_warning_after_three_minutes():
    """A burst looks the same."""
    assert [] == of(RULE, shot(10))
    assert [("info", "hot")] == of(RULE, shot(20))
    assert [("warning", "hot")] == of(RULE, shot(200))


def test_the_cause_says_what_is_felt():
    """Publishers that are held back."""
    finding = one(RULE, shot(20))

    assert "publishers are held back (flow): 'billing'" in finding.cause
    assert "10000 a second in and out" in finding.summary


def test_a_queue_in_flow_is_a_sign_too():
    """It waits for something behind it."""
    assert "the queue itself is in flow" in one(RULE, shot(20, flow=False, state="flow")).cause


@pytest.mark.parametrize(
    "fields",
    [{"flow": False}, {"flow": 20}, {"rate": 200.0}, {"other": 5000.0}, {"type": "stream"}],
    ids=["not felt", "now and then only", "little traffic", "others carry as much", "stream"],
)
def test_other_queues_are_left_alone(fields):
    """A queue that is merely the busiest is no finding."""
    assert [] == of(RULE, shot(60, **fields))
