"""Clients of the stream protocol and of MQTT on a real broker: what is read of them, joined to their names."""

import time

import pytest
import requests

from ackscope.address import parse_amqp
from ackscope.clock import SystemClock
from exporter.broker.settings import ManagementSettings
from exporter.broker.snapshot_builder import read_once
from lab.amqp import connect
from lab.cluster import start_lab
from lab.native import CLIENTS, MqttClient, StreamConnections, listener

pytestmark = pytest.mark.integration

STREAM, SESSION = "native.stream", "mqtt-subscription-native-deviceqos1"
FAMILIES = ("overview", "nodes", "queues", "consumers", "connections", "streams")
_WITHIN = 30.0


@pytest.fixture(scope="module", params=["4.0", "4.3"])
def management(request):
    """A broker with a publisher and two readers of a stream, one of which stopped, and an MQTT client that hangs."""
    with start_lab(request.param, extra=CLIENTS) as lab:
        node = lab.nodes[0]
        address = parse_amqp(node.amqp)
        setup = connect(address, "setup")
        setup.channel().queue_declare(STREAM, durable=True, arguments={"x-queue-type": "stream"})
        setup.close()

        def ask(method, path):
            return requests.request(method, f"{node.management}{path}", timeout=10).json()

        clients = StreamConnections(address, listener(ask, "stream"))
        clients.write(clients.connect("native-writer"), STREAM, 20.0)
        clients.read(clients.connect("native-reader"), STREAM)
        clients.read(clients.connect("native-stopped"), STREAM, credit=1, most=1)
        device = MqttClient(address, listener(ask, "mqtt"), "native-device", handle=lambda _: False)
        device.subscribe("native")
        yield node.management
        device.close()
        clients.close()


def read(management, ready):
    """The snapshot once the broker has its statistics, and each connection and consumer by the name of the client."""
    deadline = time.monotonic() + _WITHIN
    while True:
        snapshot = read_once("lab", ManagementSettings(url=management), SystemClock(), 20, FAMILIES)
        names = {each.name: each.client_name for each in snapshot.connections.value or ()}
        consumers = {names.get(each.connection_name): each for each in snapshot.consumers.value or ()}
        if ready(snapshot, consumers):
            return snapshot, names, consumers
        assert time.monotonic() < deadline, snapshot
        time.sleep(1)


def test_readers_and_publishers_of_a_stream_are_joined_to_their_clients(management):
    """One keeps up, the other falls behind; the publisher gets its confirms."""
    snapshot, names, consumers = read(
        management,
        lambda taken, known: (known["native-stopped"].offset_lag or 0) > 100 if "native-stopped" in known else False,
    )
    (publisher,) = snapshot.streams.value.publishers

    assert consumers["native-reader"].offset_lag < consumers["native-stopped"].offset_lag
    assert {STREAM} == {each.queue for each in consumers.values() if each.subscription is not None}
    assert consumers["native-stopped"].prefetch_count is None
    assert "native-writer" == names[publisher.connection_name]
    assert publisher.published >= publisher.confirmed > 0
    assert not snapshot.streams.gaps
    assert not snapshot.consumers.gaps


def test_an_mqtt_client_is_known_by_its_id(management):
    """Its consumer has no channel, and its queue is that of its session."""
    snapshot, _, consumers = read(management, lambda _, known: "native-device" in known)
    consumer = consumers["native-device"]

    assert (SESSION, None) == (consumer.queue, consumer.channel_name)
    assert consumer.prefetch_count > 0
    assert "native-device" in {each.client_id for each in snapshot.connections.value}
