"""Polling is reduced while a broker is idle, and resumes in full once it is active."""

import pika
import pytest

from exporter.polling.adaptive_budget import IDLE_FULL_INTERVAL_SECONDS, MAX_SHARE, MIN_IDLE_SHARE
from lab.cluster import start_lab
from lab.many import make_queues, names
from tests.integration.exporter.running import eventually, exporting

pytestmark = [pytest.mark.integration, pytest.mark.slow]

QUEUES = names(1000)
READINGS = 'ackscope_poll_attempts_total{cluster="shop",family="queues"}'
READY = f'rabbitmq_queue_messages_ready{{cluster="shop",vhost="/",queue="{QUEUES[7]}"}}'
BUDGET = 'ackscope_poll_budget_ratio{cluster="shop"}'
IN_FULL = 'ackscope_poll_full_reading{cluster="shop"}'
EVERY = 'ackscope_poll_interval_seconds{cluster="shop",family="queues"}'
CHECKED = 'ackscope_health_check_asked_timestamp_seconds{{cluster="shop",check="{}"}}'
BACKLOG = 2000


def reused_age(exporter):
    """Seconds by which a passed check is older than the alarms check, which is read in every round."""
    return exporter.value(CHECKED.format("alarms")) - exporter.value(CHECKED.format("virtual-hosts"))


@pytest.mark.parametrize("broker", ["3.10", "4.3"])
def test_the_budget_follows_activity(broker, tmp_path):
    """A backlog in the broker's totals: its queue is then found earlier."""
    with start_lab(broker) as lab:
        make_queues(lab.nodes[0].management, QUEUES)
        with exporting(lab.nodes[0], tmp_path, poll={"interval": "5s"}, probes={"enabled": []}) as exporter:
            eventually(lambda: (exporter.value(READINGS) or 0) > 1)
            idle = exporter.value(BUDGET)
            # In full: totals would wake every queue's process once a minute.
            in_full, every = exporter.value(IN_FULL), exporter.value(EVERY)
            # Two rounds, because a round may happen between the two requests.
            eventually(lambda: reused_age(exporter) > 9)
            client = pika.BlockingConnection(pika.URLParameters(lab.nodes[0].amqp))
            channel = client.channel()
            channel.confirm_delivery()
            for _ in range(BACKLOG):
                channel.basic_publish("", QUEUES[7], b"x")
            client.close()
            eventually(lambda: exporter.value(BUDGET) == MAX_SHARE)
            eventually(lambda: reused_age(exporter) == 0)
            eventually(lambda: exporter.value(READY) == BACKLOG)

    assert MIN_IDLE_SHARE <= idle < MAX_SHARE
    assert in_full == 1
    assert every <= IDLE_FULL_INTERVAL_SECONDS
