import pytest

from ackscope.snapshot import Node, Overview
from tests.unit.diagnosis.pictures import NODE, WALL, channel, consumer, film, look, queue, stats, told
from tests.unit.diagnosis.queues.films import of, one

RULE = "qq-segment-growth"
MIB = 1_048_576
OTHER = "10.0.0.8:50002 -> 10.0.0.1:5672"


def picture(t, *, held=1, rate=20.0, idle=True, free=None, **fields):
    """A quorum queue with messages of a MiB: one consumer holds one, another takes 20 a second."""
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
    still = channel(messages_unacked=held, stats=stats(deliver=1), idle_since=WALL if idle else None)
    busy = channel(f"{OTHER} (1)", messages_unacked=1, stats=counters)
    return {
        "queues": (work,),
        "consumers": (
            consumer(prefetch_count=1),
            consumer(tag="ctag2", channel_name=f"{OTHER} (1)", connection_name=OTHER),
        ),
        "channels": (still, busy),
        "nodes": (Node(name=NODE, running=True, disk_free=free),),
    }


def shot(until, version="4.0.5", **fields):
    """The verdict after so many seconds."""
    overview = Overview(rabbitmq_version=version, statistics=True, rates_mode="basic", stats=stats(publish=1))
    return look(film(lambda t: {**picture(t, **fields), "overview": overview}, until=until))


def test_what_passed_a_message_that_is_held_stays_on_disk():
    """Twenty MiB a second: 256 MiB are there after 13 seconds."""
    assert [] == of(RULE, shot(10))
    assert [("info", "orders")] == of(RULE, shot(20))


def test_the_finding_names_the_consumer_that_holds_it():
    """And how much that is."""
    finding = one(RULE, shot(30))

    assert "About 600 MiB cannot be freed" in finding.summary
    assert "consumer 'ctag1'" in finding.cause
    assert "rabbitmq-queues quorum_status --vhost / orders" in told(finding)


def test_much_or_half_of_what_is_free_is_a_warning():
    """Whichever comes first."""
    assert [("warning", "orders")] == of(RULE, shot(30, free=1000 * MIB))
    assert [("warning", "orders")] == of(RULE, shot(120))


def test_from_4_3_on_nothing_is_pinned():
    """Its log gives back what lies between."""
    assert [("info", "orders")] == of(RULE, shot(30, "4.2.1"))
    assert [] == of(RULE, shot(120, "4.3.6"))


def test_the_broker_may_know_for_how_long():
    """We watched for 20 s only; the channel is idle for longer."""
    assert "held for 20 s" in one(RULE, shot(20, idle=False)).summary


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
    ids=["classic", "nothing is held", "nothing passes", "little passes", "one consumer", "sizes not told"],
)
def test_other_queues_are_left_alone(fields):
    """Each looks like it in all but one thing."""
    assert [] == of(RULE, shot(60, **fields))
