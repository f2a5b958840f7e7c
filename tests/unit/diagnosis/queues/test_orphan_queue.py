import pytest

from tests.unit.diagnosis.pictures import film, look, queue, stats
from tests.unit.diagnosis.queues.films import binding, exchange, flowing, frame, of, one

RULE = "orphan-queue"
BOUND = (binding("events", "orders"), binding("events", "read"))


def picture(t, *, bindings=BOUND, **fields):
    """One of two queues of an exchange is consumed."""
    counters = stats(publish=int(100 + 4 * t))
    made = {"consumers": 0, "messages_ready": int(100 + 4 * t), "stats": counters, **fields}
    other = flowing(t, "read", published=4.0, acked=4.0)
    return frame(queue(**made), other, exchanges=(exchange("events"),), bindings=bindings)


def shot(until, **fields):
    """The result after this many seconds."""
    return look(film(lambda t: picture(t, **fields), until=until))


def test_with_a_sibling_it_is_information_first_and_a_warning_after_three_minutes():
    """Its consumer may be about to be deployed."""
    assert [] == of(RULE, shot(10))
    assert [("info", "orders")] == of(RULE, shot(20))
    assert [("warning", "orders")] == of(RULE, shot(200))


def test_no_consumer_follows_from_it():
    """One cause, one finding."""
    assert [RULE] == [finding.rule for finding in shot(200).findings]


def test_the_finding_names_the_sibling():
    """And the exchange that routes to both."""
    assert [{"queue": "read", "exchange": "events"}] == one(RULE, shot(20)).facts["siblings"]


def test_without_a_sibling_it_takes_ten_minutes():
    """Until then it is no-consumer only."""
    assert [] == of(RULE, shot(400, bindings=()))
    assert [("warning", "orders")] == of(RULE, shot(610, bindings=()))


@pytest.mark.parametrize(
    "fields",
    [
        {"stats": stats(publish=100, deliver_get=1)},
        {"consumers": 1},
        {"messages_ready": 100},
        {"durable": False},
        {"exclusive": True},
        {"arguments": {"x-max-length": 100}},
        {"arguments": {"x-expires": 60000}},
        {"type": "stream"},
    ],
    ids=["was read once", "is consumed", "does not grow", "transient", "private", "limited", "expires", "stream"],
)
def test_other_queues_are_not_reported(fields):
    """Each differs in one thing only."""
    assert [] == of(RULE, shot(300, **fields))


def test_a_dead_letter_queue_is_read_by_people():
    """Whatever its name."""

    def store(t):
        made = picture(t)
        source = queue("work", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders"})
        return {**made, "queues": (*made["queues"], source)}

    assert [] == of(RULE, look(film(store, until=300)))
