"""listener-missing: the listeners are suspended; existing connections stay, new ones are refused.

This includes the management listener, on every version.
"""

import contextlib
import socket

from lab.faults.fault import Fault, FaultSpec
from lab.faults.nodes.inside import NODE, until


def inject(fault: Fault) -> None:
    """Suspend the listeners; resume them at the end."""
    fault.later(lambda: fault.lab.ctl(0, "resume_listeners"))
    fault.lab.ctl(0, "suspend_listeners")
    until(fault, lambda: not _listens(fault), "a refused connection")
    fault.announce()
    fault.hold()


def _listens(fault: Fault) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((fault.address.host, fault.address.port), timeout=2):
        return True
    return False


SPEC = FaultSpec(
    name="listener-missing",
    rule="listener-missing",
    summary="the node runs, but its AMQP port refuses every new connection",
    subject=NODE,
    inject=inject,
    alone=True,
    # A single diagnosis finds the management API closed too.
    one_shot=False,
)
