import pytest

from ackscope.snapshot import Node, Overview
from tests.unit.diagnosis.pictures import NODE, PEER, WALL, channel, consumer, film, look, queue, stats
from tests.unit.diagnosis.queues.films import of, one

RULE = "qq-segment-growth"
MIB = 1_048_576
OTHER = "10.0.0.8:50002 -> 10.0.0.1:5672"


def picture(t, *, held=1, rate=20.0, idle=True, free=None, **fields):
    """A quorum queue with messages of 1 MiB: one is never acknowledged, others are, 20 a second by another consumer."""
    acked = int(rate * t)
    counters = stats(publish=acked + 1, ack=acked, deliver=acked + 1)
    unacked = held + 1
    work = queue(
        **{
            "type": "quorum",
            "consumers": 2,
            "messages_unacked": unacked,
            "message_bytes": unacked * MIB,
            "stats": counters,
            "leader": NODE,
            **fields,
        }
    )
    idle_channel = channel(messages_unacked=held, stats=stats(deliver=1), idle_since=WALL if idle else None)
    busy = channel(f"{OTHER} (1)", messages_unacked=1, stats=counters)
    return {
        "queues": (work,),
        "consumers": (
            consumer(prefetch_count=1),
            consumer(tag="ctag2", channel_name=f"{OTHER} (1)", connection_name=OTHER),
        ),
        "channels": (idle_channel, busy),
        "nodes": (Node(name=NODE, running=True, disk_free=free),),
    }


def shot(until, version="4.0.5", **fields):
    """The result after this many seconds."""
    overview = Overview(rabbitmq_version=version, statistics=True, rates_mode="basic", stats=stats(publish=1))
    return look(film(lambda t: {**picture(t, **fields), "overview": overview}, until=until))


def test_messages_that_pass_an_unacknowledged_one_stay_on_disk():
    """20 MiB a second: 256 MiB are there after 13 seconds."""
    assert [] == of(RULE, shot(10))
    assert [("info", "orders")] == of(RULE, shot(20))


def test_the_finding_names_the_consumer_that_does_not_acknowledge():
    """The finding also has the size on disk."""
    finding = one(RULE, shot(30))

    assert (600, ["ctag1"]) == (
        round(finding.facts["pinned_bytes"] / MIB),
        [each["tag"] for each in finding.facts["holders"]],
    )
    assert (PEER,) == finding.involved.connections


def test_2_gib_or_half_of_the_free_space_is_a_warning():
    """Whichever is less."""
    assert [("warning", "orders")] == of(RULE, shot(30, free=1000 * MIB))
    assert [("warning", "orders")] == of(RULE, shot(120))


def test_from_4_3_on_nothing_is_pinned():
    """The log of that version frees messages in between."""
    assert [("info", "orders")] == of(RULE, shot(30, "4.2.1"))
    assert [] == of(RULE, shot(120, "4.3.6"))


def test_without_the_brokers_idle_time_our_own_readings_count():
    """The window spans 20 s."""
    assert 20.0 == one(RULE, shot(20, idle=False)).facts["held_seconds"]


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "classic"},
        {"held": 0},
        {"rate": 0.0},
        {"rate": 0.5},
        {"consumers": 1},
        {"message_bytes": None},
    ],
    ids=["classic", "nothing unacknowledged", "nothing passes", "little passes", "one consumer", "sizes absent"],
)
def test_other_queues_are_not_reported(fields):
    """Each differs in one thing only."""
    assert [] == of(RULE, shot(60, **fields))
