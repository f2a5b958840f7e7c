"""prefetch-grows: a client holds every second message on purpose, and raises its shared prefetch for each of them.

Celery does so with tasks that have an ETA or a countdown. Brokers from 4.0 on do not report a shared prefetch.
"""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.prefetch-grows"
PREFETCH = 8
_RATE = 6.0


def inject(fault: Fault) -> None:
    """Hold every second message, and raise the prefetch by one for it."""
    fault.make_queue(QUEUE)
    channel = publisher(fault, "fault-prefetch-grows-publisher")
    consumer = fault.connect("fault-prefetch-grows").channel()
    consumer.basic_qos(prefetch_count=PREFETCH, global_qos=True)
    held: list[int] = []
    due: list[int] = []

    def take(inner: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        if method.delivery_tag % 2:
            held.append(method.delivery_tag)
            due.append(PREFETCH + len(held))
        else:
            inner.basic_ack(method.delivery_tag)

    consumer.basic_consume(QUEUE, take)
    announced = False
    for _ in fault.ticks(1 / _RATE):
        publish(channel, QUEUE)
        if due:
            consumer.basic_qos(prefetch_count=due[-1], global_qos=True)
            due.clear()
        if not announced and len(held) > PREFETCH:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="prefetch-grows",
    rule="prefetch-grows",
    summary="a client holds every second message and raises its shared prefetch by one for each",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    brokers=("3.10",),
    also=("global-prefetch",),
)
