"""channel-leak: a client opens five channels a second on one connection and closes none."""

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec

_RATE = 5.0
_MOST = 1500
_PROOF = 20


def inject(fault: Fault) -> None:
    """Open channels, up to a number below the broker's limit."""
    connection = fault.connect("fault-channel-leak")
    for opened, _ in enumerate(fault.ticks(1 / _RATE), start=1):
        if opened <= _MOST:
            connection.channel()
        if opened == _PROOF:
            fault.announce()


SPEC = FaultSpec(
    name="channel-leak",
    rule="channel-leak",
    summary="a client opens five channels a second and closes none",
    subject=Subject(kind="connection", name=""),
    inject=inject,
)
