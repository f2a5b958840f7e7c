"""A real broker without statistics, and what its Prometheus endpoint adds."""

import pika
import pytest

from ackscope.address import parse_management
from ackscope.clock import SystemClock
from exporter.broker.prometheus.reader import MetricsReader
from exporter.broker.prometheus.settings import PrometheusSettings, SourceChoice
from exporter.broker.settings import ManagementSettings
from exporter.broker.snapshot_builder import read_once
from lab.cluster import start_lab
from lab.node import Extra
from tests.integration.exporter.running import eventually

pytestmark = pytest.mark.integration

OFF = Extra(config="management_agent.disable_metrics_collector = true\n")


def counted(snapshot):
    """Whether the queue has its messages and its counter; both refresh every 5 s."""
    queues = snapshot.queues.value or ()
    return [(20, 20)] == [(queue.messages_ready, queue.stats.publish) for queue in queues]


def test_a_broker_without_statistics_has_figures():
    """With its management API, and without it."""
    with start_lab("4.3", extra=OFF) as lab:
        node = lab.nodes[0]
        with pika.BlockingConnection(pika.URLParameters(node.amqp)) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.queue_declare("orders", durable=True, arguments={"x-queue-type": "quorum", "x-max-length": 100})
            for _ in range(20):
                channel.basic_publish("", "orders", b"x")
        endpoints = PrometheusSettings(urls=(node.prometheus,))

        def look(host):
            """A snapshot in which the queue is counted, else None."""
            settings = ManagementSettings(url=node.management) if host else endpoints.at(node.prometheus)
            clock = SystemClock()
            metrics = MetricsReader(endpoints, SourceChoice.AUTO, host, clock)
            snapshot = read_once("lab", settings, clock, 10, metrics=metrics)
            return snapshot if counted(snapshot) else None

        joined = eventually(lambda: look(parse_management(node.management).host), 60)
        alone = eventually(lambda: look(None), 60)

    (queue,) = joined.queues.value
    assert (100, True) == (queue.setting("max-length"), queue.settings_known)
    assert (node.name,) == joined.prometheus.value.nodes
    assert joined.nodes.value[0].mem_used > 0

    (queue,) = alone.queues.value
    assert ("quorum", node.name, False) == (queue.type, queue.node, queue.settings_known)
    assert (node.name, True) == (alone.nodes.value[0].name, alone.health.value[0].ok)
    assert alone.prometheus.value.alone
