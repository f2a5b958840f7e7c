"""large-messages: a client publishes a message of 1.5 MiB a second, which is consumed at once."""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import writer

QUEUE = "fault.large-messages-passing"
_RATE, BYTES = 1.0, 3 * 524_288


def inject(fault: Fault) -> None:
    """Publish, consume and acknowledge."""
    fault.make_queue(QUEUE)
    consumer = fault.connect(f"{QUEUE}.consumer").channel()
    consumer.basic_qos(prefetch_count=10)
    consumer.basic_consume(QUEUE, lambda inner, method, *_: inner.basic_ack(method.delivery_tag))
    channel = writer(fault, QUEUE)
    for number, _ in enumerate(fault.ticks(1 / _RATE)):
        publish(channel, QUEUE, body=b"x" * BYTES)
        if number == 4 * _RATE:
            fault.announce()


SPEC = FaultSpec(
    name="large-messages-passing",
    rule="large-messages",
    summary="a client publishes messages of 1.5 MiB that are consumed at once",
    subject=Subject(kind="vhost", name=""),
    # The finding is about the virtual host, and may be about large messages of others.
    client="fault-large-messages-passing-publisher",
    inject=inject,
)
