"""hung-node: the process of the only node is stopped: its ports take connections, and nobody answers."""

import signal

from lab.faults.fault import Fault, FaultSpec
from lab.faults.nodes.inside import NODE


def inject(fault: Fault) -> None:
    """Stop it; at the end it goes on."""
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
    # Without any reading, a single diagnosis has no data.
    one_shot=False,
)
