"""broker-down: the only node is killed, like by the out-of-memory killer, and stays down."""

from lab.faults.fault import Fault, FaultSpec
from lab.faults.nodes.inside import NODE


def inject(fault: Fault) -> None:
    """Kill the node; start it again at the end."""
    fault.later(lambda: fault.lab.restart(0))
    fault.lab.kill(0)
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="broker-down",
    rule="broker-down",
    summary="the only node is killed: nothing listens on its ports",
    subject=NODE,
    inject=inject,
    alone=True,
    wrecks=True,
    # A single diagnosis reads nothing from this node, so it has no data.
    one_shot=False,
)
