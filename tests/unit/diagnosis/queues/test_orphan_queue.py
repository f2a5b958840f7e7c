import pytest

from tests.unit.diagnosis.pictures import film, look, queue, stats
from tests.unit.diagnosis.queues.films import binding, exchange, flowing, frame, of, one

RULE = "orphan-queue"
BOUND = (binding("events", "orders"), binding("events", "read"))


def picture(t, *, bindings=BOUND, **fields):
    """Of two queues of an exchange one is read."""
    counters = stats(publish=int(100 + 4 * t))
    made = {"consumers": 0, "messages_ready": int(100 + 4 * t), "stats": counters, **fields}
    other = flowing(t, "read", published=4.0, taken=4.0)
    return frame(queue(**made), other, exchanges=(exchange("events"),), bindings=bindings)


def shot(until, **fields):
    """The verdict after so many seconds."""
    return look(film(lambda t: picture(t, **fields), until=until))


def test_with_a_sibling_it_is_told_early_and_is_a_warning_after_three_minutes():
    """Its consumer may be about to be deployed."""
    assert [] == of(RULE, shot(10))
    assert [("info", "orders")] == of(RULE, shot(20))
    assert [("warning", "orders")] == of(RULE, shot(200))


def test_no_consumer_follows_from_it():
    """One cause, one finding."""
    assert [RULE] == [finding.rule for finding in shot(200).findings]


def test_the_cause_names_the_sibling():
    """The exchange that fills both."""
    assert "'read' (exchange 'events')" in one(RULE, shot(20)).cause


def test_without_a_sibling_it_takes_ten_minutes():
    """Until then it is no consumer, and no more."""
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
    ids=["was read once", "is read", "stands", "transient", "private", "bounded", "ends by itself", "stream"],
)
def test_other_queues_are_left_alone(fields):
    """Each looks like it in all but one thing."""
    assert [] == of(RULE, shot(300, **fields))


def test_a_dead_letter_store_is_read_by_people():
    """Whatever its name."""

    def store(t):
        made = picture(t)
        source = queue("work", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders"})
        return {**made, "queues": (*made["queues"], source)}

    assert [] == of(RULE, look(film(store, until=300)))
