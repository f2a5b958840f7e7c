"""connection-leak: an application opens two connections a second and closes none."""

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec

NAME = "fault-connection-leak"
_RATE = 2.0
_MOST = 300
_PROOF = 10


def inject(fault: Fault) -> None:
    """Open connections, up to a few hundred."""
    for opened, _ in enumerate(fault.ticks(1 / _RATE), start=1):
        if opened <= _MOST:
            # Nobody serves them: the broker closes them after two minutes, long after the first findings.
            fault.connect(NAME, served=False, heartbeat=60)
        if opened == _PROOF:
            fault.announce()


SPEC = FaultSpec(
    name="connection-leak",
    rule="connection-leak",
    summary="an application opens two connections a second and closes none",
    subject=Subject(kind="connection", name=NAME),
    inject=inject,
    one_shot=False,
)
