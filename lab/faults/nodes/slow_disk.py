"""slow-disk: every sync of the node's disk takes 0.3 s longer (strace, as root)."""

from lab.faults.fault import Fault, FaultSpec
from lab.faults.nodes.inside import NODE
from lab.slow_disk import slow_disk

_SECONDS = 0.3


def inject(fault: Fault) -> None:
    """Delay the node's syncs until the end of the fault."""
    with slow_disk(fault.lab.pid(0), _SECONDS):
        fault.announce()
        fault.hold()


SPEC = FaultSpec(
    name="slow-disk",
    rule="slow-disk",
    summary="every fsync takes 0.3 s longer",
    subject=NODE,
    inject=inject,
    alone=True,
)
