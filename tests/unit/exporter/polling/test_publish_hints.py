from queue import SimpleQueue

import pytest

from ackscope.clock import Instant, SystemClock
from ackscope.counters import MessageStats
from ackscope.snapshot import Channel, Connection, Part
from exporter.broker.families import PUBLISHES
from exporter.broker.prometheus.reader import MetricsReader
from exporter.broker.prometheus.settings import PrometheusSettings, SourceChoice
from exporter.broker.settings import ManagementSettings
from exporter.polling.poller import Poller
from exporter.polling.publish_hints import PublishHints
from tests.unit.exporter.broker.server import fixture, json, reply, serve
from tests.unit.exporter.polling.watching import DEADLINE, quickly, whole_broker


def part(value, mono):
    """A reading at a time."""
    return Part(value=value, at=Instant(wall=1.7e9 + mono, mono=mono))


def wanted(*counters, client="press", consumers=0, every=5.0):
    """Whether the exchanges are asked for after readings of one channel, 5 s apart."""
    hints, found = PublishHints(), frozenset()
    connections = part((Connection(name="c", client_name=client),), 0.0)
    for place, each in enumerate(counters):
        channel = Channel(name="c (1)", connection_name="c", consumer_count=consumers, stats=MessageStats(**each))
        found = hints.update(part((channel,), every * place), connections)
    return PUBLISHES in found


@pytest.mark.parametrize("counter", ["drop_unroutable", "return_unroutable"])
def test_a_channel_that_begins_to_lose_messages_asks_for_the_exchanges(counter):
    """Also a single message more."""
    assert wanted({"publish": 50}, {"publish": 100, counter: 1})
    assert wanted({"publish": 50, counter: 7}, {"publish": 100, counter: 8})


def test_what_was_lost_before_asks_for_nothing():
    """It may be long over."""
    assert not wanted({"publish": 50, "drop_unroutable": 7}, {"publish": 100, "drop_unroutable": 7})
    assert not wanted({"publish": 50, "drop_unroutable": 7})


@pytest.mark.parametrize(
    ("consumers", "published", "acked", "expected"),
    [(1, 100, 100, True), (1, 80, 100, True), (1, 30, 100, False), (1, 3, 3, False), (0, 100, 100, False)],
    ids=["all", "most", "few of them", "too few to say", "no consumer"],
)
def test_a_consumer_that_publishes_what_it_acknowledges_asks_for_the_exchanges(consumers, published, acked, expected):
    """It may publish to the queue that it consumes from."""
    readings = ({"publish": 500, "ack": 900}, {"publish": 500 + published, "ack": 900 + acked})

    assert expected == wanted(*readings, consumers=consumers)


def test_own_probes_lose_messages_by_design():
    """They would ask for the exchanges all the time."""
    lossy = [{"publish": 50 * n, "return_unroutable": 5 * n} for n in (1, 2, 3)]

    assert wanted(*lossy)
    assert not wanted(*lossy, client="ackscope-probe confirm")


def test_the_suspicion_ends_half_a_minute_after_the_last_loss():
    """A rule needs readings before and after it."""
    lossy, quiet = [{"drop_unroutable": n} for n in (1, 2)], {"drop_unroutable": 2}

    assert wanted(*lossy, *[quiet] * 6)
    assert not wanted(*lossy, *[quiet] * 7)


def test_the_endpoints_are_asked_only_while_a_channel_loses_messages():
    """A poller reads them then, and the snapshot has the rows."""
    dropped = {"count": 5}

    def channels(request):
        lossy = {"name": "c (1)", "message_stats": {"publish": 900, "drop_unroutable": dropped["count"]}}
        json([lossy])(request)

    (node,) = [each["name"] for each in fixture("4.3.6", "nodes")][:1]
    row = 'rabbitmq_detailed_channel_messages_published_total{channel="<0.1.0>",vhost="/",exchange="x"} 9'
    text = f'rabbitmq_identity_info{{rabbitmq_node="{node}"}} 1\n{row}\n'.encode()
    endpoint = {"/metrics/detailed": reply(text, content_type="text/plain")}
    with serve({**whole_broker("4.3.6"), "/api/channels": channels}) as server, serve(endpoint) as other:
        metrics = MetricsReader(PrometheusSettings(urls=(other.url,)), SourceChoice.AUTO, "127.0.0.1", SystemClock())
        snapshots = SimpleQueue()
        poller = Poller(
            "shop", ManagementSettings(url=server.url), quickly(), SystemClock(), snapshots.put, metrics=metrics
        )
        poller.start()
        try:
            for _ in range(20):
                quiet = snapshots.get(timeout=DEADLINE)
            assert ([], Part()) == (other.seen, quiet.exchange_publishes)
            dropped["count"] += 1
            for _ in range(200):
                suspicious = snapshots.get(timeout=DEADLINE)
                if suspicious.exchange_publishes.value is not None:
                    break
        finally:
            poller.stop()

    assert [("x", 9)] == [(each.exchange, each.published) for each in suspicious.exchange_publishes.value.channels]
    assert 1 == len(other.seen)
    assert poller.stats.families[PUBLISHES].requests == 1
