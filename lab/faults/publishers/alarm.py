"""Helpers of faults with blocked publishers: raise a memory alarm, and restore the watermark."""

import time

from pika import BasicProperties
from pika.adapters.blocking_connection import BlockingChannel

from lab.amqp import PERSISTENT
from lab.control import ALARM_WATERMARK
from lab.faults.fault import Fault
from lab.faults.listed import connections_named

_LOOK = 2.0
_MESSAGES = 200
"""Few small messages, which fit into the socket buffer, so that the client does not block."""


def publish_into_alarm(fault: Fault, channel: BlockingChannel, queue: str, client: str) -> None:
    """Raise the alarm and publish until the fault ends; announce it once the broker blocks the client."""
    raise_memory_alarm(fault)
    announced, sent, looked = False, 0, 0.0
    for _ in fault.ticks(0.2):
        if sent < _MESSAGES:
            channel.basic_publish("", queue, b"during", BasicProperties(delivery_mode=PERSISTENT))
            sent += 1
        if not announced and time.monotonic() - looked > _LOOK:
            looked = time.monotonic()
            if blocked(fault, client):
                fault.announce()
                announced = True


def raise_memory_alarm(fault: Fault) -> None:
    """Set the memory limit of the first node below its memory use until the fault ends."""
    usual = "0.6" if not fault.lab.broker.asked.startswith("3") else "0.4"
    fault.later(lambda: fault.lab.ctl(0, "set_vm_memory_high_watermark", usual))
    fault.lab.ctl(0, "set_vm_memory_high_watermark", ALARM_WATERMARK)


def blocked(fault: Fault, name: str) -> bool:
    """Return whether the broker lists the connection with this name as blocked."""
    return any(each.get("state") == "blocked" for each in connections_named(fault, name))
