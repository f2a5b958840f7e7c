"""heartbeat-extreme: a consumer that turned heartbeats off."""

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec


def inject(fault: Fault) -> None:
    """Keep a connection without heartbeats."""
    fault.connect("fault-heartbeat-extreme", heartbeat=0).channel()
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="heartbeat-extreme",
    rule="heartbeat-extreme",
    summary="a connection without heartbeats",
    subject=Subject(kind="cluster", name=""),
    inject=inject,
)
