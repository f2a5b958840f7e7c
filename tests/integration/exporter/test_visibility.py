import logging
import time

import pika
import pytest

from ackscope.clock import SystemClock
from exporter.broker.queue_reader import QueueMode
from exporter.broker.settings import ManagementSettings
from exporter.broker.snapshot_builder import read_once
from exporter.broker.visibility import NO_STATISTICS
from exporter.polling.settings import PollSettings
from lab.cluster import start_lab
from lab.node import Extra
from tests.integration.exporter.polled import polled
from tests.integration.exporter.running import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow]

SWITCHES = {
    "management": "management.disable_stats = true\n",
    "collector": "management_agent.disable_metrics_collector = true\n",
}

COUNTS = {"orders": 3, "bills": 3, "log": None}
"""Messages by queue; without statistics no version reports those of a stream."""


def message_counts(snapshot):
    """Queue name -> messages."""
    return {queue.name: queue.messages for queue in snapshot.queues.value or ()}


@pytest.mark.parametrize("broker", ["3.10", "4.0", "4.3"])
@pytest.mark.parametrize("switch", SWITCHES)
def test_a_broker_without_statistics_is_read_as_far_as_possible(broker, switch, caplog):
    """Queue totals, health, configuration; one log line about the rest, and no false zeros."""
    caplog.set_level(logging.INFO, logger="exporter.polling")
    with start_lab(broker, extra=Extra(config=SWITCHES[switch])) as lab:
        connection = pika.BlockingConnection(pika.URLParameters(lab.nodes[0].amqp))
        channel = connection.channel()
        for name, kind in (("orders", "classic"), ("bills", "quorum"), ("log", "stream")):
            channel.queue_declare(name, durable=True, arguments={"x-queue-type": kind})
        channel.confirm_delivery()
        for _ in range(3):
            channel.basic_publish("", "orders", b"x")
            channel.basic_publish("", "bills", b"x")
        settings = ManagementSettings(url=lab.nodes[0].management)
        with polled("shop", settings, PollSettings(interval=1, budget=0.5)) as (poller, snapshots):
            # The totals of quorum queues lag by some seconds.
            eventually(lambda: message_counts(poller.latest) == COUNTS, 120)
            until = time.monotonic() + 6
            while time.monotonic() < until:
                snapshots.get(timeout=20)
            last, stats = poller.latest, poller.stats
        once = read_once("shop", settings, SystemClock(), 10)
        connection.close()

    assert COUNTS == message_counts(last) == message_counts(once)
    assert last.overview.value.statistics is False
    assert (QueueMode.TOTALS, None) == (stats.mode, stats.coverage)
    assert all(check.ok for check in last.health.value if check.ok is not None)
    assert last.consumers.value is None
    assert "no statistics" in last.consumers.error
    # Requested once, and not again within these seconds.
    assert stats.families["consumers"].attempts == 1
    assert last.channels.value != ()
    assert last.connections.value != () or last.connections.error == NO_STATISTICS
    assert last.nodes.value[0].mem_used is None
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert 1 == len([line for line in lines if "collects no statistics" in line])
    assert not [line for line in lines if "cannot be read" in line]
