"""Clients that use MQTT: one that never acknowledges, one that is slow, one that went away, two that share an id."""

import time
from collections.abc import Callable
from typing import Any

from ackscope.findings import Subject
from lab.faults.consumers.native_spec import native_spec
from lab.faults.fault import Fault, FaultSpec
from lab.native import MqttClient, listener

_RATE = 10.0
_READY = 20
_CYCLES = 30.0


def _queue(client_id: str) -> str:
    """Return the queue of a session with quality of service 1."""
    return f"mqtt-subscription-{client_id}qos1"


def _client(fault: Fault, port: int, client_id: str, **more: Any) -> MqttClient:
    client = MqttClient(fault.address, port, client_id, **more)
    fault.later(client.close)
    return client


def _session(
    name: str, *, away: bool = False, handle: Callable[[Any], bool] = lambda _: True
) -> Callable[[Fault], None]:
    """Return an injection: a publisher, and a persistent session whose client handles messages like this or is away."""

    def inject(fault: Fault) -> None:
        port, client_id, topic = listener(fault.ask, "mqtt", fault.control), f"fault-{name}", f"fault/{name}"
        # Registered first, so that it is deleted when its client is gone.
        fault.later(lambda: _delete(fault, _queue(client_id)))
        client = _client(fault, port, client_id, lasting=True, handle=handle)
        client.subscribe(topic)
        _wait_for(fault, _queue(client_id))
        if away:
            client.close()
        publisher = _client(fault, port, f"fault-{name}-publisher")
        for number, _ in enumerate(fault.ticks(1 / _RATE)):
            publisher.publish(topic)
            if number == _READY + 20:
                fault.announce()

    return inject


def _wait_for(fault: Fault, queue: str) -> None:
    for _ in fault.ticks(0.2):
        if any(each["name"] == queue for each in fault.ask("GET", "/api/queues")):
            return


def _delete(fault: Fault, queue: str) -> None:
    with fault.briefly("fault-cleanup") as channel:
        channel.queue_delete(queue)


def _slowly(_message: Any) -> bool:
    time.sleep(0.5)
    return True


def _share_id(fault: Fault) -> None:
    """Connect two clients with one id: each connection ends the other one, and both connect again."""
    port = listener(fault.ask, "mqtt", fault.control)
    for _ in range(2):
        _client(fault, port, "fault-mqtt-shared-id", again=True)
    began = time.monotonic()
    announced = False
    for _ in fault.ticks(0.5):
        if not announced and time.monotonic() - began > _CYCLES:
            fault.announce()
            announced = True


def _spec(name: str, rule: str, summary: str, inject: Callable[[Fault], None], **more: Any) -> FaultSpec:
    return native_spec(name, rule, summary, _queue(f"fault-{name}"), inject, protocol="MQTT", **more)


SPECS = (
    _spec(
        "mqtt-session-left",
        "no-consumer",
        "an MQTT client with a persistent session went away; 10 messages a second are published to its topic",
        _session("mqtt-session-left", away=True),
    ),
    _spec(
        "mqtt-never-acknowledges",
        "stuck-consumer",
        "an MQTT client takes what it may hold and sends no PUBACK; publishing continues at 10 messages/s",
        _session("mqtt-never-acknowledges", handle=lambda _: False),
    ),
    _spec(
        "mqtt-slow",
        "slow-consumer",
        "an MQTT client acknowledges 2 messages a second of 10",
        _session("mqtt-slow", handle=_slowly),
    ),
    _spec(
        "mqtt-shared-id",
        "connection-churn",
        "two MQTT clients share an id, so that each connection ends the other one",
        _share_id,
        subject=Subject(kind="connection", name="fault-mqtt-shared-id"),
        apart=True,
        # Each connection lives for 7 s, and three of them are a loop.
        one_shot=False,
    ),
)
