"""republish-loop: a consumer publishes each message to its own queue again and acknowledges it.

In a virtual host of its own, because publishers of other queues would hide it.
"""

import time
from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.clients.limited import make_vhost
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.republish-loop"
_VHOST = "fault-republish-loop"
_MESSAGES, _WORK, _PROOF = 6, 0.03, 100


def inject(fault: Fault) -> None:
    """Publish a few messages once; each of them fails and is published again."""
    make_vhost(fault, _VHOST)
    consumer = fault.connect("fault-republish-loop", virtual_host=_VHOST).channel()
    consumer.queue_declare(QUEUE, durable=True)
    publish(consumer, QUEUE, _MESSAGES)
    consumer.basic_qos(prefetch_count=3)
    failed = 0

    def take(inner: BlockingChannel, method: Any, properties: Any, body: bytes) -> None:
        nonlocal failed
        time.sleep(_WORK)
        inner.basic_publish("", QUEUE, body, properties)
        inner.basic_ack(method.delivery_tag)
        failed += 1

    consumer.basic_consume(QUEUE, take)
    announced = False
    for _ in fault.ticks(0.5):
        if not announced and failed >= _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="republish-loop",
    rule="republish-loop",
    summary="a consumer publishes each of 6 messages to its own queue again, about 30 times a second in total",
    subject=Subject(kind="queue", name=QUEUE, vhost=_VHOST),
    inject=inject,
    also=("mixed-connection", "pub-no-confirms"),
    one_shot=False,
)
