"""Clients of the stream protocol and of MQTT that work as they should, and an MQTT topic without a subscriber."""

import time
from typing import Any

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec
from lab.native import CLIENTS, MqttClient, StreamConnections, listener

_STREAM, _TOPIC = "fault.decoy.native-clients", "decoy/native"
_RATE = 20.0


def _works(_message: Any) -> bool:
    time.sleep(0.02)
    return True


def inject(fault: Fault) -> None:
    """Read a stream at its end, take 20 MQTT messages a second, and publish to a topic that nobody wants."""
    fault.make_queue(_STREAM, {"x-queue-type": "stream", "x-max-length-bytes": 100_000_000})
    clients = StreamConnections(fault.address, listener(fault.ask, "stream", fault.control))
    fault.later(clients.close)
    clients.write(clients.connect("decoy-stream-publisher"), _STREAM, _RATE)
    clients.read(clients.connect("decoy-stream-reader"), _STREAM)
    # Asks for one chunk at a time, and is about as fast as the publisher.
    clients.read(clients.connect("decoy-stream-archive"), _STREAM, credit=1, rate=2 * _RATE)
    port = listener(fault.ask, "mqtt", fault.control)
    names = ("decoy-mqtt-device", "decoy-mqtt-publisher")
    device, publisher = (MqttClient(fault.address, port, name, handle=_works) for name in names)
    for client in (device, publisher):
        fault.later(client.close)
    device.subscribe(_TOPIC)
    for number, _ in enumerate(fault.ticks(1 / _RATE)):
        publisher.publish(_TOPIC)
        publisher.publish("decoy/unwanted")
        if number == 40:
            fault.announce()


SPEC = FaultSpec(
    name="decoy.native-clients",
    rule="",
    summary="clients of the stream protocol and of MQTT work, and nobody subscribes to a topic",
    subject=Subject(kind="queue", name=_STREAM),
    inject=inject,
    brokers=("4.0", "4.3"),
    extra=CLIENTS,
)
