import pytest

from ackscope.findings import flat
from ackscope.snapshot import Node
from tests.unit.diagnosis.pictures import NODE, film, look, queue, stats
from tests.unit.diagnosis.queues import films
from tests.unit.diagnosis.queues.films import binding, exchange, of, one

RULE = "queue-deleted"


def frame(t, *queues, uptime=86_400.0, **parts):
    """The parts of a snapshot of a node that has run for a day."""
    return {**films.frame(*queues, **parts), "nodes": (Node(name=NODE, running=True, uptime_seconds=uptime + t),)}


def held(name="work", *, t=0.0, messages=200, acked=0.0, **fields):
    """A queue with a backlog; its consumers acknowledge this many messages per second."""
    counters = stats(publish=int(1000 + acked * t), ack=int(800 + acked * t), deliver=int(800 + acked * t))
    return queue(name, messages_ready=messages, stats=counters, **fields)


def shot(until=60, *, gone=(30,), back=None, fresh=None, published=0, uptime=86_400.0, **fields):
    """The result after this many seconds; the queue is away from each of `gone` for 10 s and back empty if `back`."""

    def at(t):
        started = [start for start in gone if t >= start]
        if not started:
            return frame(t, held(t=t, **fields), queue("orders"), uptime=uptime)
        if not back or t < started[-1] + back:
            return frame(t, queue("orders"), uptime=uptime)
        again = held(t=t - started[-1] - back, **{"messages": fresh or 0, **fields})
        counters = stats(publish=published + int(10 * (t - started[-1] - back)), deliver=0, ack=0)
        return frame(t, queue("work", **{**again_fields(again), "stats": counters}), queue("orders"), uptime=uptime)

    return look(film(at, until=until))


def again_fields(item):
    """The settings of a queue, for the one that is declared again."""
    return {
        "durable": item.durable,
        "auto_delete": item.auto_delete,
        "exclusive": item.exclusive,
        "messages_ready": item.messages_ready,
    }


def test_a_lasting_queue_that_is_deleted_with_messages_is_a_warning():
    """The number is that of the last reading."""
    assert [] == of(RULE, shot(25))
    assert [("warning", "work")] == of(RULE, shot(40))
    assert (200, 1, False) == tuple(one(RULE, shot(40)).facts[key] for key in ("lost", "times", "again"))


def test_one_reading_without_the_queue_proves_nothing():
    """The list may be that of a node that has just started."""
    assert [] == of(RULE, shot(30))


def test_it_is_reported_while_readings_of_the_queue_are_held():
    """Nothing else remembers it."""
    assert [("warning", "work")] == of(RULE, shot(300))
    assert [] == of(RULE, shot(1000))


def test_a_queue_that_is_declared_again_is_seen_by_its_counters():
    """The new queue of that name begins to count at 0."""
    assert [("warning", "work")] == of(RULE, shot(60, back=10))
    assert (200, True) == tuple(one(RULE, shot(60, back=10)).facts[key] for key in ("lost", "again"))


def test_what_the_new_queue_has_may_be_what_the_old_one_had():
    """Counters that begin again with the same messages are no loss: statistics were reset, or a leader moved."""
    assert [] == of(RULE, shot(60, back=10, fresh=200))


def test_an_auto_delete_queue_that_goes_once_is_information_and_again_a_warning():
    """A deployment of its consumer deletes it once; a consumer that reconnects deletes it each time."""
    once = shot(60, back=10, auto_delete=True, durable=False)
    assert [("info", "work")] == of(RULE, once)
    more = shot(100, gone=(30, 70), back=10, fresh=90, published=90, auto_delete=True, durable=False)
    assert [("warning", "work")] == of(RULE, more)
    assert 2 == one(RULE, more).facts["times"]


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": 0},
        {"messages": 3},
        {"acked": 20.0},
        {"exclusive": True, "durable": False},
        {"messages": 200, "arguments": {"x-expires": 20_000}, "consumers": 0},
    ],
    ids=["empty", "few messages", "drained", "a queue for replies", "expired"],
)
def test_these_deletions_lose_nothing_or_have_another_name(fields):
    """A consumer of 20 messages/s may have settled 200 within the interval and the delay of the counters."""
    assert [] == of(RULE, shot(60, **fields))


def test_a_restart_of_a_node_is_no_deletion():
    """Its queues are not listed for some seconds, and their counters begin again."""
    assert [] == of(RULE, shot(60, uptime=-28.0))
    assert [] == of(RULE, shot(60, back=10, uptime=-28.0))


def test_many_deleted_queues_of_one_vhost_are_one_finding():
    """Somebody cleaned up, or deleted the virtual host."""

    def at(t):
        return frame(t, *([held(f"work.{n}") for n in range(8)] if t < 30 else []), queue("orders"))

    result = look(film(at, until=60))
    assert [("warning", "/")] == of(RULE, result)
    assert (8, 1600, False) == tuple(one(RULE, result).facts[key] for key in ("queue_count", "lost", "all_queues"))


def test_it_explains_the_exchange_that_drops_messages_since():
    """One cause: the queue is gone, so its exchange has no route."""

    def at(t):
        here = t < 30
        routed = int(20 * min(t, 30))
        events = exchange("events", stats=stats(publish_in=int(20 * t), publish_out=routed))
        return frame(
            t,
            *([held()] if here else []),
            queue("orders"),
            exchanges=[events],
            bindings=[binding("events", "work")] if here else [],
        )

    result = look(film(at, until=120))
    assert [("warning", "work")] == of(RULE, result)
    others = {each.rule for each in flat(result.findings)} - {RULE}
    assert {each.rule for each in result.findings}.isdisjoint(others)


def test_a_queue_that_was_drained_and_then_deleted_lost_nothing():
    """The last reading of a queue that is emptied at 20/s may be 12 s old, and 5 s passed until it was missed."""

    def at(t):
        drained_by = int(20 * max(0.0, t - 19))
        if t >= 30:
            return frame(t, queue("orders"))
        drained = stats(publish=400, deliver_get=drained_by, get=drained_by, ack=drained_by)
        return frame(t, queue("batch.1", messages_ready=400 - drained_by, stats=drained), queue("orders"))

    assert [] == of(RULE, look(film(at, until=60)))


@pytest.mark.parametrize(("taken", "lost"), [(280, []), (0, [("warning", "batch.1")])])
def test_one_reading_of_a_queue_tells_no_pace(taken, lost):
    """Older readings are further apart, so one is left of a queue that was there for half a minute."""

    def at(t):
        counters = stats(publish=400, deliver_get=taken, get=taken, ack=taken)
        once = (queue("batch.1", messages_ready=400 - taken, stats=counters),) if t == 15 else ()
        return frame(t, *once, queue("orders"))

    assert lost == of(RULE, look(film(at, until=60)))
