"""connection-open-refused: a client asks for a virtual host that does not exist."""

from dataclasses import replace

from ackscope.errors import BrokerError, Refused, Unreachable
from ackscope.findings import Subject
from lab.amqp import connect
from lab.faults.clients.again import PROOF
from lab.faults.fault import Fault, FaultSpec

_EVERY = 1.0


def inject(fault: Fault) -> None:
    """Log in and ask for such a virtual host, once a second."""
    outside = replace(fault.address, vhost="fault.prodution")
    for times, _ in enumerate(fault.ticks(_EVERY), start=1):
        try:
            connect(outside, "fault-connection-open-refused")
        except (Refused, Unreachable):
            pass
        else:
            raise BrokerError("the broker opened a virtual host that does not exist")
        if times == PROOF:
            fault.announce()


SPEC = FaultSpec(
    name="connection-open-refused",
    rule="connection-open-refused",
    summary="a client logs in and asks for a virtual host that does not exist, once a second",
    subject=Subject(kind="cluster", name=""),
    inject=inject,
    one_shot=False,
)
