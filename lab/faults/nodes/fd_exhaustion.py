"""fd-exhaustion: a client opens many connections to a node with a limit of 300 file handles.

A 3.x broker uses 180 of them for sockets and continues without free ones. A 4.x broker uses all of them, and fails
without a free one, so this fault leaves some. Source: https://www.rabbitmq.com/docs/networking#open-file-handle-limit
"""

import contextlib

from pika.adapters.utils.connection_workflow import AMQPConnectorException

from ackscope.errors import AckscopeError
from lab.faults.fault import Fault, FaultSpec
from lab.faults.nodes.inside import NODE, node, until
from lab.node import Extra

_SHARE = 0.78
_MOST = 300
_HEARTBEAT = 300


def inject(fault: Fault) -> None:
    """Open connections and hold them, without reading from them."""
    seen = node(fault)
    room = int(_SHARE * seen["fd_total"]) - seen["fd_used"]
    if seen.get("sockets_total"):
        # Probes and the sample workload need a few, which also count.
        room = min(room, int(0.97 * seen["sockets_total"]) - seen["sockets_used"])
    # A node without free sockets does not answer the last connection: then the fault is in effect.
    with contextlib.suppress(AMQPConnectorException, AckscopeError):
        for _ in range(min(room, _MOST)):
            fault.connect("fault-fd-exhaustion", served=False, heartbeat=_HEARTBEAT)
    until(fault, lambda: _near(fault), "file handles in use")
    fault.announce()
    fault.hold()


def _near(fault: Fault) -> bool:
    seen = node(fault)
    full = bool(seen.get("sockets_total")) and seen["sockets_used"] >= 0.95 * seen["sockets_total"]
    return bool(full or seen["fd_used"] > 0.72 * seen["fd_total"])


SPEC = FaultSpec(
    name="fd-exhaustion",
    rule="fd-exhaustion",
    summary="a client opens so many connections that the node almost runs out of file descriptors",
    subject=NODE,
    inject=inject,
    extra=Extra(prefix=("prlimit", "--nofile=300")),
    alone=True,
    also=("connection-leak",),
)
