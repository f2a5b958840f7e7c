"""node-restarted: the node is killed, as a power cut would, and started again."""

from lab.faults.fault import Fault, FaultSpec
from lab.faults.nodes.inside import NODE


def inject(fault: Fault) -> None:
    """Kill it and start it on the same data; it is announced once it answers again."""
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
