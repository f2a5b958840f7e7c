"""Channels and consumers by their Erlang process, compared with the lists of a broker that keeps statistics."""

import pytest

from ackscope.address import parse_amqp
from ackscope.clock import SystemClock
from exporter.broker.prometheus.clients import CHANNEL_FAMILIES, process_lists
from exporter.broker.prometheus.endpoint import MetricsEndpoint
from exporter.broker.prometheus.figures import AGGREGATED, DETAILED, decode_figures
from exporter.broker.prometheus.settings import PrometheusSettings
from exporter.broker.settings import ManagementSettings
from exporter.broker.snapshot_builder import read_once
from lab.amqp import connect
from lab.cluster import start_lab
from tests.integration.exporter.running import eventually

pytestmark = pytest.mark.integration

FAMILIES = ("overview", "nodes", "queues", "channels", "consumers")


def channels_of(found):
    """What both sources tell of the channels, sorted."""
    return sorted(
        (
            each.consumer_count,
            each.prefetch_count,
            each.messages_unacked,
            each.messages_unconfirmed,
            each.stats.publish or 0,
            each.stats.deliver or 0,
            each.stats.deliver_no_ack or 0,
            each.stats.ack or 0,
        )
        for each in found
    )


def consumers_of(found):
    """What both sources tell of the consumers, sorted."""
    return sorted((each.queue, each.prefetch_count) for each in found)


@pytest.mark.parametrize("version", ["4.0", "4.3"])
def test_both_lists_are_equal(version):
    """Consumers that hold messages, that acknowledge automatically, share a channel, and have got nothing yet."""
    with start_lab(version) as lab:
        node = lab.nodes[0]
        connection = connect(parse_amqp(node.amqp), "clients")
        setup = connection.channel()
        for name in ("held", "auto", "idle"):
            setup.queue_declare(name, durable=True)
        for prefetch, queues in ((3, ("held",)), (0, ("auto",)), (7, ("held", "idle"))):
            channel = connection.channel()
            channel.basic_qos(prefetch_count=prefetch)
            for name in queues:
                channel.basic_consume(name, lambda *_: None, auto_ack=name == "auto")
        for name in ("held", "auto"):
            for _ in range(30):
                setup.basic_publish("", name, b"x")
        connection.process_data_events(1)
        settings = PrometheusSettings(urls=(node.prometheus,))
        endpoint = MetricsEndpoint(settings, node.prometheus)

        def look():
            """The lists by process, once both agree; None before."""
            listed = read_once("lab", ManagementSettings(url=node.management), SystemClock(), 10, FAMILIES)
            texts = [endpoint.text(AGGREGATED), endpoint.text(DETAILED, CHANNEL_FAMILIES)]
            figures = decode_figures(texts, channels=True)
            found = process_lists({figures.node.name: figures.channels}, listed.queues.value or ())
            same = channels_of(listed.channels.value or ()) == channels_of(found.channels)
            return found if same and consumers_of(listed.consumers.value) == consumers_of(found.consumers) else None

        found = eventually(look, 60)
        endpoint.close()
        connection.close()

    assert [0, 1, 1, 2] == sorted(each.consumer_count for each in found.channels)
    assert [("auto", 0), ("held", 3), ("held", 7), ("idle", 7)] == consumers_of(found.consumers)
    # One that was sent nothing yet tells nothing.
    assert [False, True, True, None] == [each.ack_required for each in sorted(found.consumers, key=lambda it: it.queue)]
