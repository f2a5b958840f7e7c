"""anonymous-connection: a connection without the name of its application."""

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec


def inject(fault: Fault) -> None:
    """Keep a connection without a name."""
    fault.connect("").channel()
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="anonymous-connection",
    rule="anonymous-connection",
    summary="a connection without a name",
    subject=Subject(kind="cluster", name=""),
    inject=inject,
)
