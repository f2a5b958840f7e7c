"""republish-loop: a consumer publishes each message to its own queue again and acknowledges it.

In a virtual host of its own, because publishers of other queues would hide it.
"""

import time

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
    # Not by callbacks: messages come without end, so that the call which serves them would never return.
    deliveries = consumer.consume(QUEUE, inactivity_timeout=0.5)
    for failed, (method, properties, body) in enumerate(deliveries, start=1):
        if fault.ending.is_set():
            return
        if method is not None:
            time.sleep(_WORK)
            consumer.basic_publish("", QUEUE, body, properties)
            consumer.basic_ack(method.delivery_tag)
        if failed == _PROOF:
            fault.announce()


SPEC = FaultSpec(
    name="republish-loop",
    rule="republish-loop",
    summary="a consumer publishes each of 6 messages to its own queue again, about 30 times a second in total",
    subject=Subject(kind="queue", name=QUEUE, vhost=_VHOST),
    inject=inject,
    also=("mixed-connection", "pub-no-confirms"),
    one_shot=False,
)
