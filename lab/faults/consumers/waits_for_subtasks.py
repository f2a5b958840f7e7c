"""Form of stuck-consumer: handlers publish subtasks to the queue that they read, and wait for their results."""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.waits-for-subtasks"
_WORKERS, _PREFETCH, _RATE = 3, 2, 2.0


def inject(fault: Fault) -> None:
    """Each worker publishes a subtask for each job, and acknowledges none: their subtasks wait behind other jobs."""
    fault.make_queue(QUEUE)
    channel, held = publisher(fault, "fault-waits-for-subtasks-publisher"), list[int]()

    def take(inner: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        held.append(method.delivery_tag)
        publish(inner, QUEUE)

    for number in range(1, _WORKERS + 1):
        worker = fault.connect(f"fault-waits-for-subtasks-{number}").channel()
        worker.basic_qos(prefetch_count=_PREFETCH)
        worker.basic_consume(QUEUE, take)
    announced = False
    for _ in fault.ticks(1 / _RATE):
        publish(channel, QUEUE)
        if not announced and len(held) == _WORKERS * _PREFETCH:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="waits-for-subtasks",
    rule="stuck-consumer",
    summary="three workers publish subtasks to the queue that they read and wait for them: a deadlock",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    also=("mixed-connection",),
)
