"""Idle quorum queues: empty, with a waiting consumer."""

from ackscope.findings import Subject
from lab.decoys.traffic import consume
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.decoy.idle-quorum"
_QUEUES = 5


def inject(fault: Fault) -> None:
    """Declare five queues, each with a consumer."""
    names = [f"{QUEUE}.{number}" if number else QUEUE for number in range(_QUEUES)]
    for name in names:
        fault.make_queue(name, {"x-queue-type": "quorum"})
    connection = fault.connect("decoy-idle-consumer")
    for name in names:
        consume(connection, name)
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="decoy.idle-quorum",
    rule="",
    summary="five quorum queues with consumers and without messages",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
