import pytest

from tests.unit.diagnosis.pictures import consumer, film, look, queue, stats
from tests.unit.diagnosis.queues.films import of, one

RULE = "queue-overload"
SURGE = 40.0


def busy(t, *, before=8.0, now=30.0, took=8.0, takes=10.0, **fields):
    """A queue that is kept up with until second 40, when more comes."""
    late = max(0.0, t - SURGE)
    published, acked = before * min(t, SURGE) + now * late, took * min(t, SURGE) + takes * late
    counters = stats(publish=int(100 + published), ack=int(acked), deliver=int(acked) + 20)
    made = {"messages_ready": int(max(0.0, published - acked)), "messages_unacked": 20, "stats": counters, **fields}
    return {"queues": (queue(**made),), "consumers": (consumer(prefetch_count=20),)}


def shot(until, **fields):
    """The verdict after so many seconds."""
    return look(film(lambda t: busy(t, **fields), until=until))


def test_a_surge_is_told_early_and_is_a_warning_after_three_minutes():
    """A burst looks the same."""
    assert [] == of(RULE, shot(45))
    assert [("info", "orders")] == of(RULE, shot(65))
    assert [("warning", "orders")] == of(RULE, shot(260))


def test_the_cause_says_that_the_load_changed():
    """And that the consumers did not."""
    finding = one(RULE, shot(65))

    assert "Publishes rose from 8.0 to 26.3 a second" in finding.cause
    assert "9.7, as fast as before" in finding.cause


def test_consumers_that_slowed_down_are_another_cause():
    """The same growth, for the other reason."""
    assert [] == of(RULE, shot(120, now=8.0, takes=2.0))


def test_a_queue_that_hands_out_less_than_its_consumers_may_hold():
    """They wait while messages do."""
    verdict = shot(120, before=30.0, now=30.0, took=10.0, takes=10.0, messages_unacked=2)

    assert "may hold more than they do" in one(RULE, verdict).cause


@pytest.mark.parametrize(
    "fields",
    [{"now": 8.0, "takes": 8.0}, {"consumers": 0}, {"takes": 0.0}, {"messages_ready": 40}, {"type": "stream"}],
    ids=["no surge", "nobody consumes", "nothing is taken", "it does not grow", "stream"],
)
def test_other_queues_are_left_alone(fields):
    """Each has a cause of its own, or none."""
    assert [] == of(RULE, shot(120, **fields))
