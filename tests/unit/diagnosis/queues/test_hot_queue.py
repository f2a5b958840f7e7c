import pytest

from tests.unit.diagnosis.pictures import channel, connection, film, look, queue, stats
from tests.unit.diagnosis.queues.films import flowing, frame, of, one

RULE = "hot-queue"


def picture(t, *, rate=5000.0, flow=True, other=10.0, **fields):
    """One queue with 5,000 messages per second in and out, another with few, and a publisher that is throttled."""
    counters = stats(publish=int(rate * t), ack=int(rate * t), deliver=int(rate * t), deliver_get=int(rate * t))
    hot = queue("hot", **{"stats": counters, "messages_unacked": 500, **fields})
    state = "flow" if flow is True or (flow and int(t) % flow == 0) else "running"
    publisher = channel(state=state, stats=counters)
    made = frame(hot, flowing(t, published=other, acked=other))
    return {**made, "connections": (connection(),), "channels": (publisher,)}


def shot(until, **fields):
    """The result after this many seconds."""
    return look(film(lambda t: picture(t, **fields), until=until))


def test_it_is_information_first_and_a_warning_after_three_minutes():
    """A burst looks the same."""
    assert [] == of(RULE, shot(10))
    assert [("info", "hot")] == of(RULE, shot(20))
    assert [("warning", "hot")] == of(RULE, shot(200))


def test_publishers_that_are_throttled_show_the_limit():
    """They are named."""
    finding = one(RULE, shot(20))

    assert ["billing"] == finding.facts["throttled"]
    assert ("billing",) == finding.involved.clients
    assert 10_000 == finding.facts["traffic_rate"]


def test_a_queue_in_flow_shows_the_limit_too():
    """It waits for something behind it."""
    assert one(RULE, shot(20, flow=False, state="flow")).facts["in_flow"]


@pytest.mark.parametrize(
    "fields",
    [{"flow": False}, {"flow": 20}, {"rate": 200.0}, {"other": 5000.0}, {"type": "stream"}],
    ids=["no effect", "now and then only", "little traffic", "others carry as much", "stream"],
)
def test_other_queues_are_not_reported(fields):
    """A queue that is just the busiest is no finding."""
    assert [] == of(RULE, shot(60, **fields))
