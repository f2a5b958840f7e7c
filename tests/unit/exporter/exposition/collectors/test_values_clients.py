"""Values of channels, consumers and connections, for a handmade cluster."""

from dataclasses import replace

from ackscope.snapshot import Channel, Connection, Consumer, MessageStats, Queue
from exporter.exposition.cardinality.selection import OTHER
from exporter.exposition.collectors import channels, connections, consumer_each, consumers
from tests.unit.exporter.exposition.collectors.reading import values
from tests.unit.exporter.made import part, small

FREE = Consumer(tag="t", vhost="/", queue="orders", channel_name="c1", ack_required=True, prefetch_count=0)


def test_consumers_of_left_out_queues_are_left_out():
    """The same queues are shown everywhere."""
    two = tuple(Queue(vhost="/", name=name, messages=size) for name, size in (("a", 1), ("b", 2)))
    both = tuple(Consumer(tag=name, vhost="/", queue=name, ack_required=True) for name in ("a", "b"))
    seen = values(consumers.collect, small(queues=part(two), consumers=part(both)), max_queues=1)

    assert {"b"} == {key[2] for key in seen}


def test_prefetch_is_added_up_and_compared_with_what_is_held():
    """A prefetch of 10 and 3 held messages give 0.3."""
    seen = values(consumers.collect, small())

    assert seen["ackscope_consumer_prefetch", "/", "orders"] == 10
    assert seen["ackscope_prefetch_used_ratio", "/", "orders"] == 0.3
    assert seen["ackscope_prefetch_unlimited_consumers", "/", "orders"] == 0
    assert seen["ackscope_queue_consumers", "/", "orders", "manual"] == 1
    assert seen["ackscope_queue_consumers", "/", "orders", "automatic"] == 0


def test_prefetch_zero_is_no_limit_and_no_sum():
    """An unlimited consumer is counted, and the sum and the share are withheld."""
    seen = values(consumers.collect, small(consumers=part((FREE,))))

    assert seen["ackscope_prefetch_unlimited_consumers", "/", "orders"] == 1
    assert ("ackscope_consumer_prefetch", "/", "orders") not in seen
    assert ("ackscope_prefetch_used_ratio", "/", "orders") not in seen


def test_a_limit_of_the_whole_channel_is_a_limit():
    """basic.qos with the global flag leaves the consumer's own prefetch at 0, but it is not unlimited."""
    snapshot = small(consumers=part((FREE,)), channels=part((Channel(name="c1", global_prefetch_count=50),)))

    assert values(consumers.collect, snapshot)["ackscope_prefetch_unlimited_consumers", "/", "orders"] == 0


def test_without_channels_nobody_is_called_unlimited():
    """Whether the channel limits a consumer is unknown then."""
    snapshot = replace(small(consumers=part((FREE,))), channels=part(()))

    assert ("ackscope_prefetch_unlimited_consumers", "/", "orders") not in values(consumers.collect, snapshot)


def joined(*tags):
    """Consumers of one channel of a connection whose client names itself."""
    consumer = Consumer(
        tag="", vhost="/", queue="orders", channel_name="c1", connection_name="k1", prefetch_count=5, ack_required=True
    )
    channel = Channel(name="c1", connection_name="k1", consumer_count=len(tags), messages_unacked=4, node="n1")
    connection = Connection(name="k1", client_name="billing", user="shop", peer_host="10.0.0.7", node="n1")
    return small(
        consumers=part(tuple(replace(consumer, tag=tag, active=True) for tag in tags)),
        channels=part((channel,)),
        connections=part((connection,)),
    )


def test_a_consumer_is_joined_to_the_client_behind_it():
    """Its channel and connection supply what the consumer does not report itself."""
    seen = values(consumer_each.collect, joined("t1"))

    assert seen["ackscope_consumer_info", "/", "orders", "t1", "c1", "k1", "billing", "shop", "10.0.0.7", "n1"] == 1
    assert seen["ackscope_consumer_prefetch_messages", "/", "orders", "t1", "c1"] == 5
    assert seen["ackscope_consumer_acknowledges", "/", "orders", "t1", "c1"] == 1
    assert seen["ackscope_consumer_active", "/", "orders", "t1", "c1"] == 1
    assert seen["ackscope_consumer_messages_unacked", "/", "orders", "t1", "c1"] == 4


def test_what_a_channel_holds_is_not_divided_among_its_consumers():
    """The broker counts per channel, so the share of each of two consumers is unknown."""
    seen = values(consumer_each.collect, joined("t1", "t2"))

    assert {"t1", "t2"} == {key[3] for key in seen if key[0] == "ackscope_consumer_info"}
    assert not [key for key in seen if key[0] == "ackscope_consumer_messages_unacked"]


def test_a_consumer_that_came_between_two_readings_gets_no_false_share():
    """The channel has two consumers, the list only one."""
    late = joined("t1", "t2")
    seen = values(consumer_each.collect, replace(late, consumers=part(late.consumers.value[:1])))

    assert not [key for key in seen if key[0] == "ackscope_consumer_messages_unacked"]


def test_without_channels_and_connections_a_consumer_is_still_shown():
    """Unknown labels are empty."""
    seen = values(consumer_each.collect, small(channels=part(()), connections=part(())))

    assert seen["ackscope_consumer_info", "/", "orders", "t", "c1", "", "", "", "", ""] == 1


def test_the_same_tag_on_two_channels_is_two_consumers():
    """Applications may choose the same tag."""
    both = tuple(replace(FREE, channel_name=name) for name in ("c1", "c2"))
    seen = values(consumer_each.collect, small(consumers=part(both)))

    assert 2 == sum(key[0] == "ackscope_consumer_prefetch_messages" for key in seen)


def test_consumers_are_counted_by_activity():
    """All of them, whatever the caps are."""
    some = tuple(replace(FREE, tag=str(number), activity_status="waiting" if number else None) for number in range(3))
    seen = values(consumer_each.collect, small(consumers=part(some)), max_consumers=1)

    assert (seen["ackscope_consumers", "waiting"], seen["ackscope_consumers", "unknown"]) == (2, 1)


def test_each_channel_reports_its_own_and_modes_are_counted():
    """A value that one channel does not report is absent for that channel only."""
    seen = values(channels.collect, small())

    assert seen["rabbitmq_channel_messages_unacked", "", "", "", "c1"] == 3
    assert ("rabbitmq_channel_messages_unacked", "", "", "", "c2") not in seen
    assert seen["ackscope_channels", "confirm"] == 1
    assert seen["ackscope_channels", "plain"] == 1
    assert seen["ackscope_channels", "transaction"] == 0


def test_channels_beyond_the_cap_are_one_series():
    """Its counters do not fall when one of them closes."""
    one, two = (Channel(name=name, messages_unacked=1, stats=MessageStats(publish=5)) for name in ("c1", "c2"))
    more = replace(two, stats=MessageStats(publish=8))
    moments = [small(channels=part(value)) for value in ((one, two), (one, more), (one,))]
    name = "rabbitmq_channel_messages_published_total"

    assert values(channels.collect, *moments[:2], max_channels=0)[name, "", "", "", OTHER] == 3
    assert values(channels.collect, *moments, max_channels=0)[name, "", "", "", OTHER] == 3
    assert (
        values(channels.collect, *moments, max_channels=0)["rabbitmq_channel_messages_unacked", "", "", "", OTHER] == 1
    )


def test_a_rest_with_a_gap_is_withheld():
    """A partial total looks like a consumer that acknowledged."""
    seen = values(channels.collect, small(), max_channels=0)

    assert ("rabbitmq_channel_messages_unacked", "", "", "", OTHER) not in seen


def test_blocked_connections_are_counted_even_when_none_is():
    """Rules compare with 0; states that only this broker knows are there, too."""
    some = (Connection(name="k", state="blocked"), Connection(name="l", state="odd"), Connection(name="m"))
    seen = values(connections.collect, small(connections=part(some)))

    assert seen["ackscope_connections", "blocked"] == 1
    assert seen["ackscope_connections", "running"] == 0
    assert seen["ackscope_connections", "odd"] == 1
    assert seen["ackscope_connections", "unknown"] == 1
    assert seen["ackscope_connection_blocked", "", "", "k"] == 1
    assert ("ackscope_connection_blocked", "", "", "m") not in seen


def test_connections_report_who_is_connected():
    """The client's own name, and where it comes from."""
    some = (Connection(name="k", vhost="/", user="shop", client_name="billing", peer_host="10.0.0.7", recv_oct=5),)
    seen = values(connections.collect, small(connections=part(some)))

    assert seen["ackscope_connection_info", "/", "shop", "k", "billing", "", "10.0.0.7", "", ""] == 1
    assert seen["rabbitmq_connection_incoming_bytes_total", "/", "shop", "k"] == 5
