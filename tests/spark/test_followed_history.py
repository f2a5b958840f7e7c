"""channels_1m and consumers_1m of objects that are followed for a while."""

import pytest

from ackscope.tables import CHANNEL_SAMPLES, CONSUMER_SAMPLES, NODE_SAMPLES, POLL_SAMPLES
from tests.spark.landing_files import poll
from tests.spark.landing_followed import channel, consumer, no_more, node

pytestmark = pytest.mark.spark


def every(seconds, start, end, family, **changes):
    """Good polls from `start` to before `end`."""
    return [poll(moment, family=family, **changes) for moment in range(start, end, seconds)]


def test_a_channel_at_its_ceiling(minutes):
    """It stays there at every poll until the next row; the prefetch is that of each of its consumers."""
    rows = minutes(
        CHANNEL_SAMPLES,
        [
            channel(0, messages_unacked=20, consumers=2),
            channel(90, messages_unacked=19, consumers=2),
            channel(120, messages_unacked=50, consumers=0),
            channel(150, messages_unacked=50, prefetch_count=0),
        ],
        every(10, 0, 180, "channels"),
    )

    assert [(6, 6), (6, 3), (0, 0)] == [(row["limited"], row["at_ceiling"]) for row in rows.values()]
    assert [6, 6, 6] == [row["samples"] for row in rows.values()]
    assert ("connection of one", "/", "shop", "rabbit@one") == tuple(
        rows[2][name] for name in ("connection", "vhost", "user", "node")
    )


def test_polls_of_another_family_know_nothing_of_channels(minutes):
    """The list of queues was read, that of channels was not."""
    assert [0] == list(minutes(CHANNEL_SAMPLES, [channel(0)], every(10, 0, 120, "queues")))


def test_while_a_channel_is_not_followed_nothing_is_known(minutes):
    """Neither levels nor increases: it may have been closed and opened again under the same name."""
    first, last = channel(0, publish=100, confirm=100), channel(190, publish=500)
    rows = minutes(
        CHANNEL_SAMPLES,
        [first, channel(30, publish=130), no_more(channel(60), "channel"), last, channel(200, publish=507)],
        every(10, 0, 240, "channels"),
    )

    assert [(0, 30), (3, 7)] == [(minute, row["published"]) for minute, row in rows.items()]
    assert [6, 5] == [row["samples"] for row in rows.values()]
    assert rows[3]["confirmed"] is None


def test_a_channel_that_is_first_seen_has_no_increase_yet(minutes):
    """Counts from before it was followed belong to no minute; its first confirm does, if other counters are known."""
    rows = minutes(
        CHANNEL_SAMPLES,
        [channel(0, publish=1000), channel(10, publish=1004, confirm=3)],
        every(10, 0, 60, "channels"),
    )

    assert [(4, 3, None)] == [(row["published"], row["confirmed"], row["acked"]) for row in rows.values()]


def test_an_exporter_that_begins_again_ends_what_it_does_not_follow(minutes):
    """At a whole poll, a channel without a row is not followed."""
    polls = [*every(10, 0, 60, "channels"), poll(120, family="channels", whole=True)]

    assert [0] == list(minutes(CHANNEL_SAMPLES, [channel(0)], [*polls, *every(10, 130, 180, "channels")]))


def test_a_consumer_that_is_not_active(minutes):
    """For as many polls as it was not; what it does not tell counts neither way."""
    rows = minutes(
        CONSUMER_SAMPLES,
        [
            consumer(0, active=False, ack_required=False),
            consumer(30),
            consumer(60, active=None, ack_required=None, prefetch_count=None),
            no_more(consumer(90), "vhost", "queue", "tag", "channel"),
        ],
        every(10, 0, 180, "consumers"),
    )

    assert [(6, 3, 3, 10), (3, 0, 0, None)] == [
        (row["samples"], row["inactive"], row["automatic"], row["prefetch_last"]) for row in rows.values()
    ]


def test_a_node_that_was_down(minutes):
    """What a sample does not tell is neither an alarm nor a level."""
    rows = minutes(
        NODE_SAMPLES,
        [
            node(0, mem_alarm=True, mem_used=500, disk_free=10),
            node(15, running=False, mem_used=None),
            node(60),
        ],
    )

    assert [(2, 1, 1, 0), (1, 0, 0, 0)] == [
        tuple(row[name] for name in ("samples", "down", "mem_alarms", "disk_alarms")) for row in rows.values()
    ]
    assert (500, None, 10) == tuple(rows[0][name] for name in ("mem_used_max", "mem_used_last", "disk_free_min"))


def test_readings_and_failures(minutes):
    """A failure has an age and no duration; a minute of failures has no objects."""
    rows = minutes(
        POLL_SAMPLES,
        [
            poll(0, took=0.5, objects=7, whole=True),
            poll(10, took=0.25, objects=8, gaps=None),
            poll(20, success=False, took=None, age=10.0, objects=None, gaps=None),
            poll(80, success=False, took=None, age=70.0, objects=None, gaps=None),
        ],
    )

    found_rows = ("reads", "failures", "took_sum", "took_max", "age_max", "objects_last", "gaps", "wholes")
    assert (2, 1, 0.75, 0.5, 10.0, 8, 0, 1) == tuple(rows[0][name] for name in found_rows)
    assert (0, 1, 0.0, None, 70.0, None, None, 0) == tuple(rows[1][name] for name in found_rows)
