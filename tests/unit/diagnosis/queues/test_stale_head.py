from dataclasses import replace

import pytest

from tests.unit.diagnosis.pictures import WALL, film, look, snapshot
from tests.unit.diagnosis.queues.films import flowing, frame, of, one

RULE = "stale-head"


def shot(until, **fields):
    """The result for a queue of 20 messages whose consumers keep up, after this many seconds."""
    made = {"published": 8.0, "acked": 8.0, "ready": 10, "unacked": 10, **fields}
    return look(film(lambda t: frame(flowing(t, **made)), until=until))


def test_an_overtaken_head_is_information_first_and_a_warning_after_five_minutes():
    """One message has been unacknowledged since the film began, while 8 a second pass it."""
    held = {"head_message_timestamp": int(WALL)}

    assert [] == of(RULE, shot(20, **held))
    assert [("info", "orders")] == of(RULE, shot(40, **held))
    assert [("warning", "orders")] == of(RULE, shot(310, **held))
    assert one(RULE, shot(40, **held)).facts["overtaken"]


def test_a_clock_of_ours_that_is_ahead_makes_no_message_old():
    """Ours is an hour ahead of that of the broker, and so of those of its publishers."""
    overview = replace(snapshot(0).overview.value, clock_offset=-3600.0)

    def frames(t):
        head = {"head_message_timestamp": int(WALL) - 3600}
        return {**frame(flowing(t, published=8.0, acked=8.0, ready=10, unacked=10, **head)), "overview": overview}

    assert [] == of(RULE, look(film(frames, until=20)))
    assert 40.0 == one(RULE, look(film(frames, until=40))).facts["age_seconds"]


def test_without_a_timestamp_the_age_follows_from_the_order():
    """Fewer messages left within ten minutes than were there at the beginning."""
    long = {"published": 2.0, "acked": 2.0, "ready": 5000, "type": "quorum"}

    assert [] == of(RULE, shot(200, **long))
    assert [("warning", "orders")] == of(RULE, shot(400, **long))
    assert (False, 400.0) == tuple(one(RULE, shot(400, **long)).facts[key] for key in ("stamped", "age_seconds"))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"head_message_timestamp": int(WALL) + 395},
        {"head_message_timestamp": int(WALL), "consumers": 0},
        {"head_message_timestamp": int(WALL), "acked": 0.0, "published": 0.0},
        {"published": 2.0, "acked": 2.0, "ready": 5000, "type": "stream"},
    ],
    ids=["passes in seconds", "young", "no consumer", "no traffic", "stream"],
)
def test_other_queues_are_not_reported(fields):
    """If nobody consumes, the age is a consequence of that."""
    assert [] == of(RULE, shot(400, **fields))


def test_a_publisher_whose_clock_is_wrong_is_suppressed():
    """Every message is ten minutes old when it arrives, and passes within seconds."""

    def wrong(t):
        return frame(
            flowing(t, published=8.0, acked=8.0, ready=10, unacked=1, head_message_timestamp=int(WALL + t) - 600)
        )

    verdict = look(film(wrong, until=120))

    assert [] == of(RULE, verdict)
    assert [("old_when_published", 600.0)] == [(each.reason, each.facts["age_seconds"]) for each in verdict.suppressed]


def test_a_backlog_that_is_consumed_in_order_is_as_old_as_it_says():
    """Each reading has another head, and each head has waited for a long time."""

    def backlog(t):
        return frame(
            flowing(t, published=2.0, acked=2.0, ready=1200, unacked=1, head_message_timestamp=int(WALL + t) - 600)
        )

    assert [("warning", "orders")] == of(RULE, look(film(backlog, until=120)))


def test_old_messages_of_a_replay_are_not_reported():
    """Each head is another message, although all are old; only one that stays for a while is stuck."""

    def replay(t):
        return frame(
            flowing(t, published=8.0, acked=8.0, ready=10, unacked=1, head_message_timestamp=int(WALL + t) - 100)
        )

    assert [] == of(RULE, look(film(replay, until=120)))
