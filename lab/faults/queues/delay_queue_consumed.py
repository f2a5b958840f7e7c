"""delay-queue-consumed: a client that retries over a delay queue consumes from that, too."""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec

WORK = "fault.delay-queue-consumed"
WAIT = "fault.delay-queue-consumed.wait"
_TTL_MS, _RATE, _PROOF = 15_000, 5.0, 20


def inject(fault: Fault) -> None:
    """Reject every fourth message; it is dead-lettered to the delay queue, where the same client acknowledges it."""
    fault.make_queue(WORK, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": WAIT})
    fault.make_queue(WAIT, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": WORK, "x-message-ttl": _TTL_MS})
    early = 0

    def take(channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        nonlocal early
        if method.consumer_tag == WORK and method.delivery_tag % 4 == 0:
            channel.basic_reject(method.delivery_tag, requeue=False)
        else:
            early += method.consumer_tag == WAIT
            channel.basic_ack(method.delivery_tag)

    consumer = fault.connect("fault-delay-queue-consumed").channel()
    consumer.basic_qos(prefetch_count=10)
    for name in (WORK, WAIT):
        consumer.basic_consume(name, take, consumer_tag=name)
    channel = fault.connect("fault-delay-queue-consumed-publisher").channel()
    announced = False
    for _ in fault.ticks(1 / _RATE):
        publish(channel, WORK)
        if early >= _PROOF and not announced:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="delay-queue-consumed",
    rule="delay-queue-consumed",
    summary="a client consumes from a work queue and from its delay queue with a TTL of 15 s",
    subject=Subject(kind="queue", name=WAIT),
    inject=inject,
)
