"""node-down: the third node is killed, like in a power failure."""

from ackscope.findings import Subject
from lab.faults.cluster.nodes import LAST, LAST_NAME, seen_down
from lab.faults.fault import Fault, FaultSpec


def inject(fault: Fault) -> None:
    """Kill the third node; start it at the end."""
    fault.later(lambda: fault.lab.restart(LAST))
    fault.lab.kill(LAST)
    seen_down(fault, LAST)
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="node-down",
    rule="node-down",
    summary="the third node of the cluster is killed",
    subject=Subject(kind="node", name=LAST_NAME, node=LAST_NAME),
    inject=inject,
    nodes=3,
    alone=True,
    also=("quorum-queue-under-replicated", "stream-replica-missing", "classic-queue-node-down"),
)
