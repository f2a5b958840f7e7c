"""hung-node: the only node is stopped with SIGSTOP: its ports accept connections, but nothing answers."""

import signal

from lab.faults.fault import Fault, FaultSpec
from lab.faults.nodes.inside import NODE


def inject(fault: Fault) -> None:
    """Stop the process; continue it at the end."""
    fault.later(lambda: fault.lab.signal(0, signal.SIGCONT))
    fault.lab.signal(0, signal.SIGSTOP)
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="hung-node",
    rule="hung-node",
    summary="the node is frozen: it accepts connections and serves none",
    subject=NODE,
    inject=inject,
    alone=True,
    # A single diagnosis reads nothing from this node, so it has no data.
    one_shot=False,
)
