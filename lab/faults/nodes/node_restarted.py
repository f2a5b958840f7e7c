"""node-restarted: the node is killed, like in a power failure, and started again."""

from lab.faults.fault import Fault, FaultSpec
from lab.faults.nodes.inside import NODE


def inject(fault: Fault) -> None:
    """Kill the node and start it with the same data; announce the fault once it answers again."""
    fault.lab.kill(0)
    fault.lab.restart(0)
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="node-restarted",
    rule="node-restarted",
    summary="the node is killed and restarted: all its connections are dropped",
    subject=NODE,
    inject=inject,
    alone=True,
    wrecks=True,
    one_shot=False,
)
