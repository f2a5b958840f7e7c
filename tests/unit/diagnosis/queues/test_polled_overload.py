"""A queue without consumers that is polled (basic.get) more slowly than messages arrive."""

import pytest

from tests.unit.diagnosis.pictures import channel, connection, film, look, queue, stats
from tests.unit.diagnosis.queues.films import of, one

RULE = "queue-overload"
JOB = "10.0.0.4:5000 -> 10.0.0.1:5672"


def polled(take, *, rate=2.0, until=300, counter="get", **fields):
    """Return a film of a queue: clients poll `take(second, ready)` messages each second; -1 polls until it is empty."""
    published = got = empty = 0
    left = 0.0
    seconds = []
    for second in range(until + 1):
        published, left = int(rate * second), rate * second - got
        number = take(second, int(left))
        if number < 0 or number > int(left):
            empty, number = empty + 1, int(left)
        got += number
        counters = stats(
            publish=published, get_empty=empty, **{counter: got}, **({"ack": got} if counter == "get" else {})
        )
        seconds.append(
            {
                "queues": (queue(**{"consumers": 0, "messages_ready": published - got, "stats": counters, **fields}),),
                "channels": (channel(f"{JOB} (1)", consumer_count=0, stats=counters),),
                "connections": (connection(JOB, client_name="mail-cron"),),
            }
        )
    return lambda t: seconds[int(t)]


def every(pause, number, *, first=0, since=0):
    """Return a job that polls so many messages (-1: all) each `pause` seconds."""
    return lambda second, _: number if second % pause == first and second >= since else 0


def shot(until, take, **fields):
    """The result after this many seconds."""
    return look(film(polled(take, until=until, **fields), until=until))


@pytest.mark.parametrize(
    ("take", "fields"),
    [
        (every(2, 1), {}),
        (every(1, 6), {"rate": 14.0, "counter": "get_no_ack"}),
        (every(20, 30), {"rate": 4.0, "type": "quorum", "name": "reminders"}),
        (every(25, 8, first=7), {"rate": 0.9, "name": "faxes"}),
        (lambda second, ready: 3 if ready > 3 else 0, {"rate": 7.0}),
    ],
)
def test_a_queue_that_grows_while_it_is_polled_is_overloaded(take, fields):
    """Information first, a warning after three minutes; the client and both rates are named."""
    early, late = (one(RULE, shot(until, take, **fields)) for until in (130, 380))

    assert ("info", "warning") == (early.severity.value, late.severity.value)
    assert ("polled", ["mail-cron"]) == (late.facts["reason"], late.facts["pollers"])
    assert ("mail-cron",) == late.involved.clients
    assert late.facts["consume_rate"] < late.facts["publish_rate"]
    assert late.facts["publish_rate"] == pytest.approx(fields.get("rate", 2.0), rel=0.15)


@pytest.mark.parametrize(
    ("take", "fields"),
    [
        (every(20, -1), {}),
        (every(60, -1, first=50), {"rate": 9.0}),
        (every(240, -1, first=200), {}),
        # It takes one by one until the queue is empty, for half of the time.
        (lambda second, ready: min(5, ready) if second % 120 >= 60 else 0, {"rate": 2.0}),
        (lambda second, ready: min(20, ready) if second % 90 < 20 else 0, {"rate": 4.0}),
        # As fast as messages arrive, or faster.
        (every(1, 2), {"rate": 2.0}),
        (every(2, 9), {"rate": 4.0}),
        # It falls behind for half a minute only.
        (lambda second, _: 4 if second < 250 or second > 290 else 1, {"rate": 4.0}),
    ],
)
def test_a_job_that_empties_the_queue_is_none(take, fields):
    """At no time, also between two runs."""
    for until in (40, 75, 130, 200, 235, 300):
        assert [] == of(RULE, shot(until, take, **fields)), until


def test_a_short_growth_is_none():
    """Less than a minute."""
    assert [] == of(RULE, shot(55, every(2, 1)))


def test_a_person_who_looks_at_a_few_messages_is_no_job():
    """It is polled, and nobody works at it."""
    assert [] == of(RULE, shot(300, every(30, 1), rate=5.0))
