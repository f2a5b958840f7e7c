from dataclasses import replace

import pytest

from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.errors import UsageError
from ackscope.snapshot import Part, Queue, Snapshot
from diagnosis.queue_age import QueueAges
from diagnosis.window import Window
from exporter.api.columns import LISTS, columns

START = Instant(wall=1_700_000_000.0, mono=1000.0)


def at(seconds):
    """Return the time this long after the start."""
    return Instant(wall=START.wall + seconds, mono=START.mono + seconds)


def window(*readings):
    """A window of (seconds, queues) readings."""
    found = Window.empty("shop")
    for seconds, queues in readings:
        part = Part(value=tuple(queues), at=at(seconds))
        found = found.add(Snapshot(cluster="shop", taken=at(seconds), queues=part))
    return found


def queue(name="orders", **fields):
    """A queue of the vhost /."""
    return Queue(vhost="/", name=name, **fields)


def test_a_list_is_its_columns():
    """It has the requested columns in the order of their declaration, with the age of the reading."""
    found = columns(window((0, [queue(messages_ready=3), queue("stock")])), "queues", "messages_ready,name", at(4))

    assert {"name": ["orders", "stock"], "messages_ready": [3, None]} == found["columns"]
    assert (2, 4.0, None, "shop") == tuple(found[name] for name in ("rows", "age_seconds", "error", "cluster"))


def test_a_list_that_is_not_known_has_no_rows():
    """Which is not the same as an empty one."""
    assert None is columns(Window.empty("shop"), "queues", "name", at(0))["rows"]
    assert 0 == columns(window((0, [])), "queues", "name", at(0))["rows"]


@pytest.mark.parametrize("name", LISTS)
def test_every_list_has_every_column_that_it_names(name):
    """Empty while nothing is known."""
    found = columns(Window.empty("shop"), name, None, at(0))

    assert {key: [] for key in LISTS[name].names} == found["columns"]


def test_a_wrong_column_is_named():
    """The message suggests the nearest name."""
    with pytest.raises(UsageError, match="'nam' is not known"):
        columns(Window.empty("shop"), "queues", "nam", at(0))


@pytest.mark.parametrize(
    ("then", "now", "expected"),
    [
        (MessageStats(publish=10, ack=10), MessageStats(publish=110, ack=60), 2.0),
        (MessageStats(publish=10), MessageStats(publish=20, ack=50), 2.0),
        (MessageStats(publish=10), MessageStats(publish=20), 0.0),
        (MessageStats(ack=900), MessageStats(ack=5), None),
        (MessageStats(), MessageStats(), None),
    ],
    ids=["grew", "first-acks", "none", "began-anew", "not-counted"],
)
def test_how_fast_a_counter_grew(then, now, expected):
    """The rate is per second over the last half minute; unknown rates are absent."""
    readings = window((0, [queue(stats=then)]), (25, [queue(stats=now)]))

    assert [expected] == columns(readings, "queues", "lately.ack", at(25))["columns"]["lately.ack"]


def test_counters_of_one_reading_report_no_rate():
    """Statistics that were read once stay in later lists."""
    old = queue(stats=MessageStats(ack=5), details_at=at(0))
    readings = window((10, [old]), (40, [replace(old, messages_ready=1)]))

    assert [None] == columns(readings, "queues", "lately.ack", at(40))["columns"]["lately.ack"]
    assert [40.0] == columns(readings, "queues", "details_age", at(40))["columns"]["details_age"]


@pytest.mark.parametrize(
    ("then", "now", "expected"),
    [(10, 60, 2.0), (60, 10, -2.0), (None, 10, None), (10, None, None)],
    ids=["rose", "fell", "not-known-then", "not-known-now"],
)
def test_how_fast_a_level_moved(then, now, expected):
    """The rate is per second between two lists, whatever the age of the counters."""
    readings = window(
        (0, [queue(messages_ready=then, details_at=at(-60))]), (25, [queue(messages_ready=now, details_at=at(-60))])
    )

    assert [expected] == columns(readings, "queues", "lately.messages_ready", at(25))["columns"][
        "lately.messages_ready"
    ]


def test_a_new_queue_did_not_move():
    """Its earlier level is unknown, which is not zero."""
    readings = window((0, []), (25, [queue(messages_ready=5)]))

    assert [None] == columns(readings, "queues", "lately.messages_ready", at(25))["columns"]["lately.messages_ready"]


def test_the_age_of_a_queue_is_as_of_the_list():
    """Not of the request; what is unknown is null, with its reason."""
    ages, readings = QueueAges(), window((0, []), (5, [queue(messages=2, stats=MessageStats(publish=2))]))
    for snapshot in readings.snapshots:
        known = ages.add(snapshot)
    found = columns(readings, "queues", "head_age_lower,head_age_upper,sojourn_p50_lower", at(60), known)["columns"]
    [upper] = found["head_age_upper"]

    assert [0.0] == found["head_age_lower"]
    assert 5 <= upper < 11
    assert [None] == found["sojourn_p50_lower"]


def test_an_age_that_is_unknown_has_its_reason():
    """A stream has none, and a queue without an age has no reason either."""
    readings = window((0, [queue(type="stream"), queue("stock")]))
    known = QueueAges().add(readings.snapshots[-1])

    reasons = columns(readings, "queues", "age_reasons", at(0), known)["columns"]["age_reasons"]
    assert [("stream",), ("no_statistics",)] == reasons
    assert [(), ()] == columns(readings, "queues", "age_reasons", at(0))["columns"]["age_reasons"]
