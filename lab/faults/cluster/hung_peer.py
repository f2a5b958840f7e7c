"""hung-peer: the third node freezes, like a paused virtual machine; its peers hang until they consider it down."""

import signal

from ackscope.findings import Subject
from lab.faults.cluster.nodes import LAST, LAST_NAME
from lab.faults.fault import Fault, FaultSpec


def inject(fault: Fault) -> None:
    """Freeze the third node; resume it at the end."""
    fault.later(lambda: fault.lab.signal(LAST, signal.SIGCONT))
    fault.lab.signal(LAST, signal.SIGSTOP)
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="hung-peer",
    rule="hung-peer",
    summary="the third node freezes, so requests that query all nodes hang on its healthy peers",
    subject=Subject(kind="node", name=LAST_NAME, node=LAST_NAME),
    inject=inject,
    nodes=3,
    alone=True,
    wrecks=True,
    also=("hung-node", "node-down"),
    one_shot=False,
)
