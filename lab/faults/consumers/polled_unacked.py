"""polled-unacked: a client takes messages with basic.get and acknowledges none of them."""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.polled-unacked"
_RATE, _PROOF = 8.0, 80


def inject(fault: Fault) -> None:
    """Publish at a constant rate, and poll as often."""
    fault.make_queue(QUEUE, {"x-queue-type": "quorum"})
    channel = publisher(fault, "fault-polled-unacked-publisher")
    poller = fault.connect("fault-polled-unacked").channel()
    for polled, _ in enumerate(fault.ticks(1 / _RATE)):
        publish(channel, QUEUE)
        poller.basic_get(QUEUE)
        if polled == _PROOF:
            fault.announce()


SPEC = FaultSpec(
    name="polled-unacked",
    rule="polled-unacked",
    summary="a client polls 8 messages a second from a quorum queue and acknowledges none",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    one_shot=False,
)
