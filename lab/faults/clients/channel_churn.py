"""channel-churn: a publisher that opens and closes a channel for each message, on one connection."""

from pika import BasicProperties

from ackscope.findings import Subject
from lab.amqp import PERSISTENT
from lab.faults.clients.again import PROOF
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.channel-churn"
_RATE = 20.0


def inject(fault: Fault) -> None:
    """Publish 20 messages a second, each on its own channel, to a queue that is limited to ten messages."""
    fault.make_queue(QUEUE, {"x-max-length": 10})
    reader = fault.connect("fault-channel-churn-consumer").channel()
    reader.basic_qos(prefetch_count=10)
    reader.basic_consume(QUEUE, lambda channel, method, *_: channel.basic_ack(method.delivery_tag))
    publisher = fault.connect("fault-channel-churn")
    for times, _ in enumerate(fault.ticks(1 / _RATE), start=1):
        channel = publisher.channel()
        channel.basic_publish("", QUEUE, b"channel-churn", BasicProperties(delivery_mode=PERSISTENT))
        channel.close()
        if times == PROOF:
            fault.announce()


SPEC = FaultSpec(
    name="channel-churn",
    rule="channel-churn",
    summary="a publisher opens and closes a channel for each message, 20 a second",
    subject=Subject(kind="connection", name=""),
    inject=inject,
    apart=True,
)
