"""global-prefetch: two consumers share the prefetch of their channel (basic.qos with global=true).

Brokers from 4.0 on do not report it, so the fault is for older ones.
Source: https://www.rabbitmq.com/docs/consumer-prefetch#sharing-the-limit
"""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.global-prefetch"


def inject(fault: Fault) -> None:
    """Start two consumers on one channel with a common prefetch of ten."""
    fault.make_queue(QUEUE)
    channel = publisher(fault, "fault-global-prefetch-publisher")
    consumer = fault.connect("fault-global-prefetch").channel()

    def take(inner: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        inner.basic_ack(method.delivery_tag)

    consumer.basic_qos(prefetch_count=10, global_qos=True)
    for number in (1, 2):
        consumer.basic_consume(QUEUE, take, consumer_tag=f"fault-global-prefetch-{number}")
    fault.announce()
    for _ in fault.ticks(0.2):
        publish(channel, QUEUE)


SPEC = FaultSpec(
    name="global-prefetch",
    rule="global-prefetch",
    summary="two consumers of a channel share one prefetch",
    subject=Subject(kind="vhost", name=""),
    inject=inject,
    brokers=("3.10",),
)
