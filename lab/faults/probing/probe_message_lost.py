"""probe-message-lost: another client consumes every other message from the probe's own queue.

Quorum queues ignore the exclusive flag of a consumer, so the probe cannot prevent this. The fault needs an exporter
whose delivery probe uses this broker with the default prefix.
"""

import time
from typing import Any

from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker

from ackscope.errors import BrokerError
from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec

QUEUE = "ackscope.probe.delivery.quorum"
_WITHIN, _PROOF = 25.0, 3


def inject(fault: Fault) -> None:
    """Wait for the probe's queue, and consume from it."""
    _wait(fault)
    channel = fault.connect("fault-probe-message-lost").channel()
    stolen, announced = 0, False

    def take(channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        nonlocal stolen
        stolen += 1
        channel.basic_ack(method.delivery_tag)

    channel.basic_consume(QUEUE, take, consumer_tag="fault-probe-message-lost")
    for _ in fault.ticks(0.2):
        if not announced and stolen >= _PROOF:
            fault.announce()
            announced = True


def _wait(fault: Fault) -> None:
    """Wait until the probe consumes, because it does not start on a queue with another consumer."""
    deadline = time.monotonic() + _WITHIN
    while time.monotonic() < deadline and not fault.ending.is_set():
        with fault.briefly("fault-probe-message-lost-setup") as setup:
            try:
                if setup.queue_declare(QUEUE, passive=True).method.consumer_count:
                    return
            except ChannelClosedByBroker:
                # The queue does not exist yet.
                pass
        fault.ending.wait(1.0)
    raise BrokerError(f"no delivery probe consumes from {QUEUE!r}; run an ackscope exporter against this broker")


SPEC = FaultSpec(
    name="probe-message-lost",
    rule="probe-message-lost",
    summary="another client consumes half of the messages of the delivery probe from its quorum queue",
    subject=Subject(kind="probe", name="delivery.quorum"),
    inject=inject,
    one_shot=False,
)
