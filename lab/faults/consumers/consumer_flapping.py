"""consumer-flapping: a consumer connects, receives messages, disconnects and reconnects, every two seconds."""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.consumer-flapping"
PREFETCH = 10
_LIVES = 1.5
_PROOF = 2


def inject(fault: Fault) -> None:
    """Consume for 1.5 s without acks, on a new connection each time."""
    fault.make_queue(QUEUE)
    channel = publisher(fault, "fault-consumer-flapping-publisher")
    publish(channel, QUEUE, PREFETCH)
    for lives, _ in enumerate(fault.ticks(0.2), 1):
        publish(channel, QUEUE)
        with fault.briefly("fault-consumer-flapping") as consumer:
            consumer.basic_qos(prefetch_count=PREFETCH)
            consumer.basic_consume(QUEUE, lambda *_: None)
            fault.ending.wait(_LIVES)
        if lives == _PROOF:
            fault.announce()


SPEC = FaultSpec(
    name="consumer-flapping",
    rule="consumer-flapping",
    summary="a consumer connects, receives 10 messages, disconnects without acks, and repeats this every two seconds",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    apart=True,
    also=("connection-churn",),
    one_shot=False,
)
