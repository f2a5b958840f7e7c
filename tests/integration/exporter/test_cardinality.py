"""A cap on series, at a real broker: what is shown and the rest add up to what the broker says itself."""

import time
from collections.abc import Iterator

import pika
import pytest

from ackscope.clock import SystemClock
from exporter.broker.settings import ManagementSettings
from exporter.broker.snapshot_builder import read_once
from exporter.exposition.cardinality.top_k import TopK
from exporter.exposition.collectors import queues, totals
from exporter.exposition.settings import MetricsSettings
from lab.cluster import Lab, start_lab

pytestmark = [pytest.mark.integration, pytest.mark.slow]

DEADLINE = 60.0
NAMES = tuple(f"orders.{number}" for number in range(8))
PUBLISHED = "rabbitmq_queue_messages_published_total"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """A broker of one node."""
    with start_lab(broker="4.3") as running:
        yield running


def publish(lab: Lab, numbers: dict[str, int]) -> None:
    """Put so many messages into each queue."""
    with pika.BlockingConnection(pika.URLParameters(lab.nodes[0].amqp)) as client:
        channel = client.channel()
        channel.confirm_delivery()
        for name, number in numbers.items():
            channel.queue_declare(name, durable=True)
            for _ in range(number):
                channel.basic_publish("", name, b"order")


def samples(collect, snapshot, selection):
    """(metric, labels without the cluster) -> value."""
    return {
        (sample.name, *list(sample.labels.values())[1:]): sample.value
        for metric in collect([snapshot], selection)
        for sample in metric.samples
    }


def test_shown_and_rest_are_the_whole(lab):
    """Gauges at once; and counters, while queues trade places under the cap, rise by what was published."""
    settings, chooser = ManagementSettings(url=lab.nodes[0].management), TopK(MetricsSettings(max_queues=3))
    sizes = {name: number for number, name in enumerate(NAMES, 1)}
    publish(lab, sizes)
    before, risen, published, deadline = {}, 0.0, False, time.monotonic() + DEADLINE
    while risen < 80:
        assert time.monotonic() < deadline, f"only {risen} of 80 were seen"
        snapshot = read_once("shop", settings, SystemClock(), 10)
        selection = chooser.select([snapshot])
        seen = samples(queues.collect, snapshot, selection)
        shown = [value for (name, *_), value in seen.items() if name == "rabbitmq_queue_messages"]
        whole = samples(totals.collect, snapshot, selection).get(("ackscope_queues_messages", "classic"))
        counters = {key: value for key, value in seen.items() if key[0] == PUBLISHED}
        if whole is None:  # queues of this moment tell nothing yet
            time.sleep(0.5)
            continue
        assert 4 == len(shown)
        assert sum(shown) == whole
        if published:
            risen += sum(value - before[key] for key, value in counters.items() if key in before)
            before = {**before, **counters}
        elif all(queue.stats.publish == sizes[queue.name] for queue in snapshot.queues.value):
            before = counters
            publish(lab, dict.fromkeys(reversed(NAMES), 10))
            published = True
        time.sleep(0.5)

    assert risen == 80
    assert samples(totals.collect, snapshot, selection)["ackscope_queues_messages_published_total", "classic"] == 80
