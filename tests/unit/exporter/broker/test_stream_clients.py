"""Clients of the stream protocol and of MQTT: what the broker lists of them, and how they are joined."""

import pytest

from ackscope.errors import BrokerError
from ackscope.snapshot import Part
from ackscope.streams import StreamClients
from exporter.broker.endpoints.connections import decode_connections
from exporter.broker.endpoints.consumers import decode_consumers
from exporter.broker.endpoints.streams import decode_streams
from exporter.broker.families import FAMILIES
from exporter.broker.reader import BrokerReader
from exporter.broker.settings import ManagementSettings
from exporter.broker.snapshot_builder import read_once
from exporter.broker.stream_clients import with_streams
from tests.unit.exporter.broker.server import json, serve
from tests.unit.exporter.made import SetClock

READER, WRITER = "127.0.0.1:55482 -> 127.0.0.1:5552", "127.0.0.1:55456 -> 127.0.0.1:5552"
CONSUMERS, PUBLISHERS = FAMILIES["streams"].paths
STREAM = {"name": "events", "vhost": "/"}
LISTS = {
    CONSUMERS: [
        {
            "connection_details": {"name": READER, "node": "rabbit@a", "user": "shop"},
            "active": True,
            "activity_status": "up",
            "consumed": 50,
            "credits": 1,
            "offset": 49,
            "offset_lag": 907,
            "properties": {},
            "queue": STREAM,
            "subscription_id": 1,
        }
    ],
    PUBLISHERS: [
        {
            "connection_details": {"name": WRITER, "node": "rabbit@a", "user": "shop"},
            "confirmed": 957,
            "errored": 3,
            "published": 960,
            "publisher_id": 2,
            "queue": STREAM,
            "reference": "",
        }
    ],
}
"""As 4.3.6 answers; 4.0.5 has the same fields."""
LISTED = {
    "consumer_tag": "stream.subid-1",
    "queue": STREAM,
    "ack_required": False,
    "prefetch_count": 0,
    "channel_details": {"name": "", "connection_name": READER, "user": "shop", "peer_port": 55482},
}


@pytest.mark.parametrize(
    ("arguments", "begins"),
    [
        ({"x-stream-offset": "first"}, "first"),
        ({"x-stream-offset": 0}, 0),
        ({"x-stream-offset": 1795773600}, 1795773600),
        ({}, None),
        ([], None),
    ],
)
def test_where_a_reader_over_amqp_091_begins_is_read(arguments, begins):
    """As 3.10.8 and 4.3.6 answer for `first`, an offset and a timestamp; without it, the reader begins at the end."""
    (consumer,), gaps = decode_consumers([{**LISTED, "arguments": arguments}], (4, 3))

    assert (begins, False) == (consumer.stream_offset, bool(gaps))


def joined(**changes):
    """The consumers of one snapshot, with what the plugin tells of them."""
    consumers, gaps = decode_consumers([{**LISTED, **changes}], (4, 3))
    streams, _ = decode_streams(LISTS, (4, 3))
    assert not gaps
    (found,) = with_streams({"consumers": Part(value=consumers), "streams": Part(value=streams)})["consumers"].value
    return found


def test_consumers_and_publishers_are_read():
    """With their connection, stream, offsets and counters."""
    clients, gaps = decode_streams(LISTS, (4, 3))
    (consumer,), (publisher,) = clients.consumers, clients.publishers

    assert not gaps
    assert (READER, 1) == consumer.key
    assert ("/", "events", 50, 49, 907, 1, True, False) == (
        *(consumer.vhost, consumer.queue, consumer.consumed, consumer.offset, consumer.offset_lag),
        *(consumer.credit, consumer.active, consumer.filtered),
    )
    assert (WRITER, 2, None, 960, 957, 3) == (
        *(publisher.connection_name, publisher.number, publisher.reference),
        *(publisher.published, publisher.confirmed, publisher.errored),
    )


@pytest.mark.parametrize(("properties", "filtered"), [({"filter.0": "eu"}, True), ({"name": "x"}, False), ([], False)])
def test_a_filter_is_known_by_its_property(properties, filtered):
    """Erlang sends an empty object as []."""
    answer = {CONSUMERS: [{**LISTS[CONSUMERS][0], "properties": properties}]}

    assert filtered is decode_streams(answer, (4, 3))[0].consumers[0].filtered


def test_a_list_that_the_broker_does_not_have_is_not_empty():
    """Without the plugin nothing is known; with it, nobody may be there."""
    assert StreamClients() == decode_streams({}, (4, 3))[0]
    assert StreamClients(consumers=()) == decode_streams({CONSUMERS: []}, (4, 3))[0]
    refused, gaps = decode_streams({CONSUMERS: {"error": "administrators only"}}, (4, 3))
    assert (None, 1) == (refused.consumers, gaps[CONSUMERS])


def test_a_consumer_gets_its_offset_and_loses_what_means_nothing():
    """0 would mean no prefetch limit, and automatic acknowledgement a risk: a reader has neither."""
    consumer = joined()

    assert (1, 907, 1, None, None) == (
        *(consumer.subscription, consumer.offset_lag, consumer.credit),
        *(consumer.prefetch_count, consumer.ack_required),
    )
    assert ("shop", READER) == (consumer.user, consumer.connection_name)


@pytest.mark.parametrize(
    "changes", [{"consumer_tag": "stream.subid-7"}, {"queue": {"name": "other", "vhost": "/"}}], ids=["number", "queue"]
)
def test_another_consumer_is_not_joined(changes):
    """The number is that of the connection, so the stream must be the same too."""
    assert (None, 0) == (joined(**changes).offset_lag, joined(**changes).prefetch_count)


@pytest.mark.parametrize(
    ("own_id", "name"), [("meter-7", "meter-7"), ("4dcb3d4c-5d46-4a3e-9a1b-8f3f6f0a1c2d", None)], ids=["set", "made"]
)
def test_an_mqtt_client_is_named_by_its_id(own_id, name):
    """Unless a library made it up."""
    item = {"name": "a", "protocol": "MQTT 3-1-1", "client_properties": {"client_id": own_id}}
    (connection,), gaps = decode_connections([item], (4, 3))

    assert (own_id, name, {}) == (connection.client_id, connection.client_name, dict(gaps))


@pytest.mark.parametrize(
    ("plugins", "known"),
    [(["rabbitmq_stream"], False), (["rabbitmq_stream", FAMILIES["streams"].plugin], True)],
    ids=["off", "on"],
)
def test_without_the_plugin_nothing_is_requested(plugins, known):
    """A request would be answered, and is not made: it would be an error in the log of a proxy."""
    routes = {
        "/api/overview": json({"rabbitmq_version": "4.3.6"}),
        "/api/nodes": json([{"name": "rabbit@a", "running": True, "enabled_plugins": plugins}]),
        "/api/consumers": json([LISTED]),
        CONSUMERS: json(LISTS[CONSUMERS]),
        PUBLISHERS: json(LISTS[PUBLISHERS]),
    }
    with serve(routes) as server:
        families = ("overview", "nodes", "consumers", "streams")
        snapshot = read_once("shop", ManagementSettings(url=server.url), SetClock(), 20, families)

    assert known is (snapshot.streams.value != StreamClients())
    assert (907 if known else None) == snapshot.consumers.value[0].offset_lag


def test_without_a_request_a_reading_is_as_old_as_the_nodes():
    """While the broker is unreachable nothing new is known, neither from the list of nodes nor from the plugin."""
    routes = {
        "/api/overview": json({"rabbitmq_version": "4.3.6"}),
        "/api/nodes": json([{"name": "rabbit@a", "running": True, "enabled_plugins": []}]),
    }
    clock = SetClock()
    with serve(routes) as server:
        reader = BrokerReader(ManagementSettings(url=server.url), clock)
        reader.read("overview")
        known_at = reader.read("nodes").at
        clock.mono += 30
        streams = reader.read("streams")
        server.routes["/api/nodes"] = json({}, 500)
        with pytest.raises(BrokerError):
            reader.read("nodes")
        with pytest.raises(BrokerError):
            reader.read("streams")
        reader.close()

    assert (StreamClients(), known_at) == (streams.value, streams.at)
