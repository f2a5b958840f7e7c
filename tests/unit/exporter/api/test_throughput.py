from dataclasses import replace

import pytest

from ackscope.counters import MessageStats
from exporter.api.throughput import COUNTERS, cluster_throughput
from tests.unit.exporter.api.test_columns import at, queue, window

OWN = ("ackscope.probe.",)


def carried(name="orders", ready=0, details_at=None, **stats):
    """A queue whose statistics were read."""
    return queue(
        name,
        messages_ready=ready,
        messages_unacked=0,
        consumers=1,
        details_at=None if details_at is None else at(details_at),
        stats=MessageStats(**stats),
    )


def reported(*readings):
    """The values of all measures, and the reasons of those without one."""
    sums = cluster_throughput(window(*readings), OWN)
    return {name: it.value for name, it in sums.items()}, {it.because for it in sums.values() if it.because}


def test_what_applications_carry_is_added_up():
    """Queues of the probes are left out; an unchanged queue adds 0."""
    idle, ours = carried("idle", ready=5), carried("ackscope.probe.confirm.classic", ready=99, publish=0)
    busier = replace(ours, stats=MessageStats(publish=9_000))
    values, why = reported(
        (0, [carried(publish=100, ack=40), carried("stock", publish=7), idle, ours]),
        (60, [carried(ready=3, publish=700, ack=640), carried("stock", publish=67), idle, busier]),
    )
    rates = {"published": 11.0, "delivered": 0.0, "acked": 10.0, "redelivered": 0.0}

    assert set() == why
    assert {"ready": 8.0, "unacked": 0.0, **rates} == values


def test_what_began_again_counted_what_it_says():
    """This covers a new queue, and one whose counters fell."""
    values, _ = reported((0, [carried(publish=500)]), (60, [carried(publish=120), carried("new", publish=60)]))

    assert 3.0 == values["published"]


def test_statistics_read_by_turns_are_each_of_their_own_stretch():
    """One queue was read recently, another earlier; both rates are known, so the sum is known."""
    slow = carried("slow", details_at=0, publish=0)
    again = carried("slow", details_at=100, publish=500)
    values, why = reported(
        (0, [carried(details_at=0, publish=0), slow]),
        (110, [carried(details_at=90, publish=90), again]),
        (200, [carried(details_at=190, publish=290), replace(again, messages_ready=1)]),
    )

    assert set() == why
    assert 2.0 + 5.0 == values["published"]


@pytest.mark.parametrize(
    ("readings", "because"),
    [
        ([], "the queues have not been read yet"),
        ([(0, [carried(publish=1)]), (40, [carried(publish=9)])], "watched for less than a minute"),
        (
            [(0, [carried(publish=1)]), (60, [carried(publish=9), queue("far", messages_ready=0, messages_unacked=0)])],
            "the details of 1 of 2 queues are unknown",
        ),
        ([(0, [carried()]), (60, [carried()])], "no queue reports message counters"),
        (
            [(0, [carried(details_at=0, publish=1)]), (60, [carried(ready=1, details_at=0, publish=1)])],
            "1 of 1 queues are read less often",
        ),
    ],
    ids=["nothing", "too-soon", "unread", "no-statistics", "read-once"],
)
def test_a_sum_that_would_not_be_whole_is_withheld(readings, because):
    """The reason is given; a partial sum would look like a drained cluster."""
    values, why = reported(*readings)

    assert [None] * len(COUNTERS) == [values[name] for name in COUNTERS]
    assert because in why.pop()


def test_a_queue_that_does_not_report_what_it_holds_leaves_the_level_unreported():
    """Its node is down."""
    values, why = reported((0, [carried(ready=4), queue("down")]), (60, [carried(ready=4), queue("down")]))

    assert None is values["ready"]
    assert "1 of 2 queues do not report it" in why


def test_an_empty_broker_carries_nothing():
    """No queues is not the same as unknown."""
    values, why = reported((0, []), (60, []))

    assert {0.0} == set(values.values())
    assert set() == why
