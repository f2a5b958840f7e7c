"""A rolling restart of a consumer: it is absent for some seconds, returns, and drains the backlog."""

import time
from typing import TYPE_CHECKING

from ackscope.findings import Subject
from lab.amqp import connect, publish
from lab.decoys.traffic import consume
from lab.faults.fault import Fault, FaultSpec

if TYPE_CHECKING:
    from pika.adapters.blocking_connection import BlockingConnection

QUEUE = "fault.decoy.deploy-restart"
_UP, _AWAY = 25.0, 15.0
_RATE = 5.0


def inject(fault: Fault) -> None:
    """Publish at a constant rate; the consumer works for 25 s and is absent for 15 s, alternately."""
    fault.make_queue(QUEUE)
    publisher = fault.connect("decoy-deploy-publisher").channel()
    publisher.confirm_delivery()
    consumer: BlockingConnection | None = None
    due = 0.0
    try:
        for _ in fault.ticks(1 / _RATE):
            publish(publisher, QUEUE)
            if time.monotonic() >= due:
                if consumer is None:
                    consumer = connect(fault.address, "decoy-deploy-consumer")
                    consume(consumer, QUEUE)
                    if due == 0.0:
                        fault.announce()
                    due = time.monotonic() + _UP
                else:
                    consumer.close()
                    consumer, due = None, time.monotonic() + _AWAY
            if consumer is not None:
                consumer.process_data_events(time_limit=0)
    finally:
        if consumer is not None:
            consumer.close()


SPEC = FaultSpec(
    name="decoy.deploy-restart",
    rule="",
    summary="a consumer restarts: it is away for 15 s, comes back and catches up",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
