"""delivered-twice: two queues are bound with the same key, and one worker consumes from both on one channel."""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec

NAME = "fault.delivered-twice"
_QUEUES, _RATE = (f"{NAME}.default", f"{NAME}.tasks"), 8.0


def inject(fault: Fault) -> None:
    """Publish 8 messages a second; each reaches both queues of the worker."""
    for queue in _QUEUES:
        fault.make_queue(queue)
    fault.make_exchange(NAME)
    with fault.briefly("fault-delivered-twice.setup") as channel:
        for queue in _QUEUES:
            channel.queue_bind(queue, NAME, "tasks")
    worker = fault.connect("fault-delivered-twice-worker").channel()
    worker.basic_qos(prefetch_count=20)

    def work(inner: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        inner.basic_ack(method.delivery_tag)

    for queue in _QUEUES:
        worker.basic_consume(queue, work)
    publisher = fault.connect("fault-delivered-twice").channel()
    publisher.confirm_delivery()
    for number, _ in enumerate(fault.ticks(1 / _RATE)):
        publish(publisher, "tasks", exchange=NAME)
        if number == 1:
            fault.announce()


SPEC = FaultSpec(
    name="delivered-twice",
    rule="delivered-twice",
    summary="two queues are bound with the same key, and one worker consumes from both: it gets each message twice",
    subject=Subject(kind="queue", name=_QUEUES[0]),
    inject=inject,
)
