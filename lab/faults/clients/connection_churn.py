"""connection-churn: a client that opens a connection for each task, two a second."""

from ackscope.findings import Subject
from lab.amqp import connect
from lab.faults.clients.again import PROOF
from lab.faults.fault import Fault, FaultSpec

NAME = "fault-connection-churn"
_RATE = 2.0


def inject(fault: Fault) -> None:
    """Connect, open a channel and close it; each connection stays open until the next one is due."""
    for times, _ in enumerate(fault.ticks(1 / _RATE), start=1):
        connection = connect(fault.address, NAME)
        connection.channel()
        fault.ending.wait(0.8 / _RATE)
        connection.close()
        if times == PROOF:
            fault.announce()


SPEC = FaultSpec(
    name="connection-churn",
    rule="connection-churn",
    summary="a client connects and disconnects twice a second",
    subject=Subject(kind="cluster", name=""),
    inject=inject,
    apart=True,
)
