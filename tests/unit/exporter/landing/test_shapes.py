from datetime import UTC, datetime

import pytest

from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.snapshot import Channel, Consumer, Node, Queue
from exporter.landing.shapes import CHANNELS, CONSUMERS, NODES, QUEUES
from tests.unit.exporter.made import NOW, WALL


def dicts(shape, objects, removed=()):
    """What a reader of the file sees."""
    return shape.block("shop", NOW, objects, removed).arrow().to_pylist()


@pytest.mark.parametrize("shape", [QUEUES, CHANNELS, CONSUMERS, NODES], ids=lambda shape: shape.table.name)
def test_every_column_is_read(shape):
    """In the order of the table, which begins with the time and the key; `gone` is ours to say."""
    names = [shape.table.time, *shape.fields] + (["gone"] if "gone" in shape.table.names else [])

    assert list(shape.table.names) == names
    assert (shape.table.time, *shape.keys) == shape.table.key
    assert list(shape.keys) == names[1 : 1 + len(shape.keys)]


def test_a_queue_is_a_row_of_what_it_reported():
    """The time is that of the reading; what the queue did not say is null."""
    queue = Queue(
        vhost="/",
        name="orders",
        type="quorum",
        messages_ready=4,
        stats=MessageStats(publish=9, deliver=2, deliver_get=3, redeliver=1),
        details_at=Instant(wall=WALL - 30, mono=NOW.mono - 30),
    )

    assert [
        {
            "at": datetime.fromtimestamp(WALL, UTC),
            "vhost": "/",
            "queue": "orders",
            "queue_type": "quorum",
            "messages_ready": 4,
            "messages_unacked": None,
            "consumers": None,
            "publish": 9,
            "deliver": 3,
            "ack": None,
            "redeliver": 1,
            "details_at": datetime.fromtimestamp(WALL - 30, UTC),
            "gone": False,
        }
    ] == dicts(QUEUES, [queue])


def test_what_is_removed_is_only_named():
    """By its key, of one part or several."""
    queue, consumer = dicts(QUEUES, [], [("/", "orders")])[0], dicts(CONSUMERS, [], [("/", "orders", "tag", None)])[0]
    channel = dicts(CHANNELS, [], ["c1"])[0]

    assert {"vhost": "/", "queue": "orders", "gone": True} == reported(queue)
    assert {"vhost": "/", "queue": "orders", "tag": "tag", "channel": "", "gone": True} == reported(consumer)
    assert {"channel": "c1", "gone": True} == reported(channel)


def reported(row):
    """The columns with a value, without the time."""
    return {name: value for name, value in row.items() if value is not None and name != "at"}


def test_a_channel_is_joined_by_name():
    """To its connection; its counters are those of the broker."""
    stats = MessageStats(publish=1, confirm=2, deliver_get=3, ack=4, redeliver=5)
    channel = Channel(name="c1", connection_name="k1", consumer_count=2, prefetch_count=0, stats=stats)

    assert {
        "channel": "c1",
        "connection": "k1",
        "consumers": 2,
        "prefetch_count": 0,
        "publish": 1,
        "confirm": 2,
        "deliver": 3,
        "ack": 4,
        "redeliver": 5,
        "gone": False,
    } == reported(dicts(CHANNELS, [channel])[0])


def test_a_consumer_without_channel_has_a_key_all_the_same():
    """Empty text: a key is never null."""
    consumer = Consumer(tag="t", vhost="/", queue="orders", active=False, ack_required=True, activity_status="waiting")

    assert {
        "vhost": "/",
        "queue": "orders",
        "tag": "t",
        "channel": "",
        "ack_required": True,
        "active": False,
        "activity_status": "waiting",
        "gone": False,
    } == reported(dicts(CONSUMERS, [consumer])[0])


@pytest.mark.parametrize(("partitions", "count"), [(None, None), ((), 0), (("b", "c"), 2)])
def test_partitions_are_counted(partitions, count):
    """Not reported is not none."""
    row = dicts(NODES, [Node(name="a", running=True, uptime_seconds=1.5, partitions=partitions)])[0]

    assert ("a", True, 1.5, count) == (row["node"], row["running"], row["uptime_seconds"], row["partitions"])
