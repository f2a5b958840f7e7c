"""Channels and consumers from the rows of channels of the Prometheus endpoints."""

import pytest

from ackscope.snapshot import Queue
from exporter.broker.prometheus.clients import ChannelFigures, process_lists
from exporter.broker.prometheus.figures import decode_figures

NODE = "rabbit@a"


def channel(consumers=0, *, sent=(), routed=(), exchanges=None, auto=(), **gauges):
    """Figures of a channel that was sent messages of these queues, to be acknowledged or (`auto`) not."""
    queues = {("/", name): {"deliver": 5, "deliver_no_ack": 0, "ack": 3} for name in sent}
    queues |= {("/", name): {"deliver": 0, "deliver_no_ack": 5} for name in auto}
    return ChannelFigures(
        gauges={"consumer_count": consumers, "prefetch_count": 10, "messages_unacked": 2, **gauges},
        queues=queues,
        exchanges=exchanges or {},
        routed=frozenset(("/", name) for name in routed),
    )


def lists(channels, **consumers):
    """The lists of one node, whose queues have so many consumers."""
    queues = [Queue(vhost="/", name=name, consumers=number) for name, number in consumers.items()]
    return process_lists({NODE: channels}, queues)


def served(found):
    """Queue -> processes of the channels of its consumers."""
    result: dict[str, list[str]] = {}
    for each in found.consumers:
        result.setdefault(each.queue, []).append(each.channel_name.split()[0])
    return result


def test_a_channel_has_its_figures_and_the_sums_of_its_counters():
    """Its virtual host is known if it used only one."""
    exchanges = {("/", "orders"): {"publish": 7, "confirm": 6}, ("/", ""): {"publish": 2, "drop_unroutable": 1}}

    (found,) = lists({"<0.9.0>": channel(1, sent=("a", "b"), exchanges=exchanges)}).channels

    assert ("<0.9.0> rabbit@a", NODE, "/", None, None) == (
        found.name,
        found.node,
        found.vhost,
        found.user,
        found.connection_name,
    )
    assert (10, 6, 9, 6, 1) == (
        found.stats.deliver,
        found.stats.ack,
        found.stats.publish,
        found.stats.confirm,
        found.stats.drop_unroutable,
    )
    assert (1, 10, 2, True) == (
        found.consumer_count,
        found.prefetch_count,
        found.messages_unacked,
        found.confirm,
    )


@pytest.mark.parametrize(
    ("channels", "consumers", "expected"),
    [
        # Each channel has as many consumers as queues that it was sent messages of.
        (
            {"<0.1.0>": channel(1, sent=("a",)), "<0.2.0>": channel(2, sent=("a", "b"))},
            {"a": 2, "b": 1},
            {"a": ["<0.1.0>", "<0.2.0>"], "b": ["<0.2.0>"]},
        ),
        # The only idle consumer is that of the only queue that lacks one.
        (
            {"<0.1.0>": channel(1, sent=("a",)), "<0.2.0>": channel(1)},
            {"a": 1, "b": 1},
            {"a": ["<0.1.0>"], "b": ["<0.2.0>"]},
        ),
        # One channel with two consumers of one queue.
        ({"<0.1.0>": channel(2, sent=("a",))}, {"a": 2}, {"a": ["<0.1.0>", "<0.1.0>"]}),
        # Which idle channel has which queue is not known.
        ({"<0.1.0>": channel(1), "<0.2.0>": channel(1)}, {"a": 1, "b": 1}, {}),
        # It was sent messages of two queues and has one consumer now: it may be of either.
        ({"<0.1.0>": channel(1, sent=("a", "b"))}, {"a": 1, "b": 1}, {}),
        # A queue without consumers is none of them.
        ({"<0.1.0>": channel(1, sent=("a", "b"))}, {"a": 1, "b": 0}, {"a": ["<0.1.0>"]}),
        # A consumer of another protocol has no channel.
        ({"<0.1.0>": channel(1, sent=("a",))}, {"a": 2}, {}),
        # The rows are older than the consumer that has left.
        ({"<0.1.0>": channel(1, sent=("a",)), "<0.2.0>": channel(1, sent=("a",))}, {"a": 1}, {}),
        # It cancelled its consumer.
        ({"<0.1.0>": channel(0, sent=("a",))}, {"a": 0}, {}),
    ],
)
def test_consumers_are_listed_where_only_one_possibility_is_left(channels, consumers, expected):
    """All of a queue or none: part of them would look like all."""
    assert expected == served(lists(channels, **consumers))


def test_nodes_are_told_apart():
    """The same process number exists at every node."""
    queues = [Queue(vhost="/", name="a", consumers=2)]

    found = process_lists(
        {"rabbit@a": {"<0.1.0>": channel(1, sent=("a",))}, "rabbit@b": {"<0.1.0>": channel(1, sent=("a",))}}, queues
    )

    assert ["<0.1.0> rabbit@a", "<0.1.0> rabbit@b"] == [each.channel_name for each in found.consumers]
    assert ["1", "2"] == [each.tag for each in found.consumers]


@pytest.mark.parametrize(
    ("figures", "expected"), [(channel(1, sent=("a",)), True), (channel(1, auto=("a",)), False), (channel(1), None)]
)
def test_the_mode_of_acknowledgement_follows_from_what_was_sent(figures, expected):
    """It is unknown before the first message."""
    (consumer,) = lists({"<0.1.0>": figures}, a=1).consumers

    assert expected is consumer.ack_required


def test_what_a_channel_used_is_known_by_name():
    """So that channels of our own probes can be left out."""
    figures = channel(1, sent=("a",), routed=("b",), exchanges={("/", "x"): {"publish": 1}})

    assert {"<0.1.0> rabbit@a": ("a", "b", "x")} == lists({"<0.1.0>": figures}, a=1).used


TEXT = """\
rabbitmq_identity_info{rabbitmq_node="rabbit@a",rabbitmq_cluster="shop"} 1
rabbitmq_detailed_channel_consumers{channel="<0.7.0>"} 1
rabbitmq_detailed_consumer_prefetch{channel="<0.7.0>"} 50
rabbitmq_detailed_channel_messages_unacked{channel="<0.7.0>"} 4
rabbitmq_detailed_channel_messages_acked_total{channel="<0.7.0>",vhost="v",queue="a\\"b"} 6
rabbitmq_detailed_channel_messages_delivered_ack_total{channel="<0.7.0>",vhost="v",queue="a\\"b"} 10
rabbitmq_detailed_channel_messages_published_total{channel="<0.7.0>",vhost="v",exchange=""} 3
"""
ROUTED = 'rabbitmq_detailed_queue_messages_published_total{channel="<0.7.0>",queue_vhost="v",queue="c",exchange=""} 3\n'


def test_rows_of_channels_are_decoded():
    """Only where they were asked for: else there are none to speak of."""
    found = decode_figures([TEXT, ROUTED], channels=True).channels

    assert {"<0.7.0>"} == set(found)
    figures = found["<0.7.0>"]
    assert {"consumer_count": 1, "prefetch_count": 50, "messages_unacked": 4} == figures.gauges
    assert {("v", 'a"b'): {"deliver": 10, "ack": 6}} == figures.queues
    assert ({("v", ""): {"publish": 3}}, {("v", "c")}) == (figures.exchanges, figures.routed)
    assert decode_figures([TEXT]).channels is None
