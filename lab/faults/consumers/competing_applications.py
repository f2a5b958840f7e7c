"""competing-applications: two applications with different client libraries consume from one queue."""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.competing-applications"
_EACH, _TICK = 5, 0.5


def inject(fault: Fault) -> None:
    """Publish ten messages a second, of which each application gets and acknowledges about half."""
    fault.make_queue(QUEUE)
    channel = publisher(fault, "fault-competing-applications-publisher")

    def take(inner: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        inner.basic_ack(method.delivery_tag)

    for product in ("Application One", "Application Two"):
        name = f"fault-{product.lower().replace(' ', '-')}"
        consumer = fault.connect(name, client_properties={"connection_name": name, "product": product}).channel()
        consumer.basic_qos(prefetch_count=10)
        consumer.basic_consume(QUEUE, take)
    for done, _ in enumerate(fault.ticks(_TICK)):
        publish(channel, QUEUE, _EACH)
        if done == 2:
            fault.announce()


SPEC = FaultSpec(
    name="competing-applications",
    rule="competing-applications",
    summary="two applications with different client libraries consume from one queue, and each gets half",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
