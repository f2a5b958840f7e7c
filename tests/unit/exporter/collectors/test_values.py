"""What single collectors say of a cluster made by hand."""

from dataclasses import replace

from ackscope.snapshot import Channel, Connection, Consumer, Node, Queue
from exporter.collectors import channels, connections, consumers, nodes, overview, queues
from exporter.collectors.contract import Limits
from tests.unit.exporter.made import part, small


def values(collect, snapshot, limits=Limits()):  # noqa: B008  immutable
    """Metric name and label values (without the cluster) -> value."""
    return {
        (sample.name, *list(sample.labels.values())[1:]): sample.value
        for metric in collect([snapshot], limits)
        for sample in metric.samples
    }


def queue(name, **more):
    """A queue in the virtual host "/"."""
    return Queue(vhost="/", name=name, **more)


def test_counters_that_the_broker_did_not_send_are_absent():
    """Before its first event a counter is not there, and so is ours."""
    seen = values(overview.collect, small())

    assert seen[("rabbitmq_global_messages_received_total",)] == 10
    assert ("rabbitmq_global_messages_acknowledged_total",) not in seen
    assert seen[("rabbitmq_connections_opened_total",)] == 5
    assert ("rabbitmq_connections_closed_total",) not in seen


def test_identity_names_the_node_of_a_single_node_only():
    """With several nodes there is still one identity series, or joins on it would break."""
    two = small(nodes=part((Node(name="a"), Node(name="b"))))

    assert values(overview.collect, small())["rabbitmq_identity_info", "rabbit@one", "rabbit@shop"] == 1
    assert values(overview.collect, two)["rabbitmq_identity_info", "", "rabbit@shop"] == 1


def test_a_node_that_is_down_has_its_state_and_nothing_else():
    """A stopped node is told by 0, and its memory is not."""
    down = small(nodes=part((Node(name="a", running=False),)))

    assert {("ackscope_node_running", "a"): 0} == values(nodes.collect, down)


def test_a_sum_with_a_missing_member_is_withheld():
    """One queue of a type that did not say takes away the total of its type, and of no other."""
    some = (
        queue("a", type="classic", messages_ready=1),
        queue("b", type="classic", messages_ready=None),
        queue("c", type="quorum", messages_ready=5),
        queue("d", type="quorum", messages_ready=6),
    )
    seen = values(queues.collect, small(queues=part(some)))

    assert ("ackscope_queues_messages_ready", "classic") not in seen
    assert seen["ackscope_queues_messages_ready", "quorum"] == 11


def test_the_cap_keeps_the_largest_queues_and_the_aggregates_count_all():
    """Most messages first, then most consumers, then the name."""
    many = (
        queue("idle-b", type="classic", messages=0, messages_ready=0, consumers=0),
        queue("idle-a", type="classic", messages=0, messages_ready=0, consumers=0),
        queue("busy", type="classic", messages=0, messages_ready=0, consumers=3),
        queue("full", type="classic", messages=9, messages_ready=9, consumers=0),
    )
    seen = values(queues.collect, small(queues=part(many)), Limits(queues=3))
    shown = {key[2] for key in seen if key[0] == "rabbitmq_queue_messages"}

    assert {"full", "busy", "idle-a"} == shown
    assert seen["ackscope_queues_messages_ready", "classic"] == 9
    assert seen["ackscope_queues", "classic", "unknown"] == 4


def test_consumers_of_left_out_queues_are_left_out():
    """The same queues are shown everywhere."""
    two = (queue("a", messages=1), queue("b", messages=2))
    both = tuple(Consumer(tag=name, vhost="/", queue=name, ack_required=True) for name in ("a", "b"))
    seen = values(consumers.collect, small(queues=part(two), consumers=part(both)), Limits(queues=1))

    assert {"b"} == {key[2] for key in seen}


def test_prefetch_is_added_up_and_compared_with_what_is_held():
    """Ten allowed and three held are three tenths."""
    seen = values(consumers.collect, small())

    assert seen["ackscope_consumer_prefetch", "/", "orders"] == 10
    assert seen["ackscope_prefetch_used_ratio", "/", "orders"] == 0.3
    assert seen["ackscope_prefetch_unlimited_consumers", "/", "orders"] == 0
    assert seen["ackscope_queue_consumers", "/", "orders", "manual"] == 1
    assert seen["ackscope_queue_consumers", "/", "orders", "automatic"] == 0


def test_prefetch_zero_is_no_limit_and_no_sum():
    """An unlimited consumer is counted, and the sum and the share are withheld."""
    free = (Consumer(tag="t", vhost="/", queue="orders", channel_name="c1", ack_required=True, prefetch_count=0),)
    seen = values(consumers.collect, small(consumers=part(free)))

    assert seen["ackscope_prefetch_unlimited_consumers", "/", "orders"] == 1
    assert ("ackscope_consumer_prefetch", "/", "orders") not in seen
    assert ("ackscope_prefetch_used_ratio", "/", "orders") not in seen


def test_a_limit_of_the_whole_channel_is_a_limit():
    """basic.qos with the global flag leaves the consumer's own count 0; it is not unlimited."""
    free = (Consumer(tag="t", vhost="/", queue="orders", channel_name="c1", ack_required=True, prefetch_count=0),)
    snapshot = small(consumers=part(free), channels=part((Channel(name="c1", global_prefetch_count=50),)))

    assert values(consumers.collect, snapshot)["ackscope_prefetch_unlimited_consumers", "/", "orders"] == 0


def test_without_channels_nobody_is_called_unlimited():
    """Whether the channel limits a consumer is unknown then."""
    free = (Consumer(tag="t", vhost="/", queue="orders", channel_name="c1", ack_required=True, prefetch_count=0),)
    snapshot = replace(small(consumers=part(free)), channels=part(()))

    assert ("ackscope_prefetch_unlimited_consumers", "/", "orders") not in values(consumers.collect, snapshot)


def test_channels_are_added_up_by_cluster_only():
    """A sum with a missing member is withheld; modes are counted."""
    seen = values(channels.collect, small())

    assert ("rabbitmq_channel_messages_unacked",) not in seen
    assert seen["ackscope_channels", "confirm"] == 1
    assert seen["ackscope_channels", "plain"] == 1
    assert seen["ackscope_channels", "transaction"] == 0


def test_a_read_list_without_entries_is_zero():
    """No channel at all is known to hold nothing: that zero is true."""
    seen = values(channels.collect, small(channels=part(())))

    assert seen[("rabbitmq_channel_messages_unacked",)] == 0


def test_blocked_connections_are_counted_even_when_none_is():
    """Rules compare with 0; states that only this broker knows are there, too."""
    some = (Connection(name="k", state="blocked"), Connection(name="l", state="odd"), Connection(name="m"))
    seen = values(connections.collect, small(connections=part(some)))

    assert seen["ackscope_connections", "blocked"] == 1
    assert seen["ackscope_connections", "running"] == 0
    assert seen["ackscope_connections", "odd"] == 1
    assert seen["ackscope_connections", "unknown"] == 1
    assert ("rabbitmq_connection_channels",) not in seen
