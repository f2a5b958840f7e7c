"""binding-missing: the queue of a publisher's messages is unbound, and the publisher continues."""

import time

from pika import BasicProperties

from ackscope.findings import Subject
from lab.amqp import PERSISTENT
from lab.faults.fault import Fault, FaultSpec

QUEUE = EXCHANGE = "fault.binding-missing"
_RATE = 10.0
_BOUND_SECONDS = 45.0
"""The exporter must have read the binding before: it reads bindings every 15 s, or less often on a busy machine."""
_PROOF = 5


def inject(fault: Fault) -> None:
    """Publish through a direct exchange to a queue that is limited to ten messages; then unbind it."""
    fault.make_queue(QUEUE, {"x-max-length": 10})
    fault.make_exchange(EXCHANGE)
    with fault.briefly("fault-binding-missing.setup") as channel:
        channel.queue_bind(QUEUE, EXCHANGE, "order")
    publisher = fault.connect("fault-binding-missing").channel()
    publisher.confirm_delivery()
    consumer = fault.connect("fault-binding-missing-consumer").channel()
    consumer.basic_qos(prefetch_count=10)
    consumer.basic_consume(QUEUE, lambda channel, method, *_: channel.basic_ack(method.delivery_tag))
    until, lost = time.monotonic() + _BOUND_SECONDS, 0
    for _ in fault.ticks(1 / _RATE):
        publisher.basic_publish(EXCHANGE, "order", b"binding-missing", BasicProperties(delivery_mode=PERSISTENT))
        if time.monotonic() < until:
            continue
        if not lost:
            consumer.queue_unbind(QUEUE, EXCHANGE, "order")
        lost += 1
        if lost == _PROOF:
            fault.announce()


SPEC = FaultSpec(
    name="binding-missing",
    rule="binding-missing",
    summary="the binding that routed a publisher's messages is removed; they reach no queue",
    subject=Subject(kind="exchange", name=EXCHANGE),
    inject=inject,
    also=("pub-unroutable-dropped",),
    one_shot=False,
)
