import pytest

from tests.unit.diagnosis.pictures import WALL, film, look
from tests.unit.diagnosis.queues.films import flowing, frame, of, one

RULE = "stale-head"


def shot(until, **fields):
    """The verdict on a queue of 20 messages that is kept up with, after so many seconds."""
    made = {"published": 8.0, "taken": 8.0, "ready": 10, "unacked": 10, **fields}
    return look(film(lambda t: frame(flowing(t, **made)), until=until))


def test_an_overtaken_head_is_told_early_and_is_a_warning_after_five_minutes():
    """One message is held since the film began, while 8 a second pass it."""
    held = {"head_message_timestamp": int(WALL)}

    assert [] == of(RULE, shot(20, **held))
    assert [("info", "orders")] == of(RULE, shot(40, **held))
    assert [("warning", "orders")] == of(RULE, shot(310, **held))
    assert "it is overtaken" in one(RULE, shot(40, **held)).cause


def test_without_a_timestamp_it_follows_from_the_order():
    """Fewer left within ten minutes than were there at the beginning."""
    long = {"published": 2.0, "taken": 2.0, "ready": 5000, "type": "quorum"}

    assert [] == of(RULE, shot(200, **long))
    assert [("warning", "orders")] == of(RULE, shot(400, **long))
    assert "at least" in one(RULE, shot(400, **long)).summary


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"head_message_timestamp": int(WALL) + 395},
        {"head_message_timestamp": int(WALL), "consumers": 0},
        {"head_message_timestamp": int(WALL), "taken": 0.0, "published": 0.0},
        {"published": 2.0, "taken": 2.0, "ready": 5000, "type": "stream"},
    ],
    ids=["passes in seconds", "young", "nobody consumes", "nothing moves", "stream"],
)
def test_other_queues_are_left_alone(fields):
    """Where nobody works the age is what follows from that."""
    assert [] == of(RULE, shot(400, **fields))


def test_a_publisher_whose_clock_is_wrong_is_set_aside():
    """Every message is ten minutes old when it comes, and passes within seconds."""

    def wrong(t):
        return frame(
            flowing(t, published=8.0, taken=8.0, ready=10, unacked=1, head_message_timestamp=int(WALL + t) - 600)
        )

    verdict = look(film(wrong, until=120))

    assert [] == of(RULE, verdict)
    assert ["10 min old by its timestamp" in each.because for each in verdict.suppressed] == [True]


def test_a_backlog_that_is_worked_off_in_order_is_as_old_as_it_says():
    """Its head is another one at each look, and every one has waited for long."""

    def backlog(t):
        return frame(
            flowing(t, published=2.0, taken=2.0, ready=1200, unacked=1, head_message_timestamp=int(WALL + t) - 600)
        )

    assert [("warning", "orders")] == of(RULE, look(film(backlog, until=120)))


def test_old_messages_of_a_replay_come_and_go():
    """Each head is another message, though all are old; only what stands for a while is held."""

    def replay(t):
        return frame(
            flowing(t, published=8.0, taken=8.0, ready=10, unacked=1, head_message_timestamp=int(WALL + t) - 100)
        )

    assert [] == of(RULE, look(film(replay, until=120)))
