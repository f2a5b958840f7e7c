"""node-draining: the third node stays in maintenance mode.

From 4.0 on; 3.10 can be drained too, but its management API does not report it.
Source: https://www.rabbitmq.com/docs/upgrade#maintenance-mode
"""

from ackscope.findings import Subject
from lab.faults.cluster.nodes import LAST, LAST_NAME, until
from lab.faults.fault import Fault, FaultSpec


def inject(fault: Fault) -> None:
    """Drain the third node; revive it at the end."""
    fault.later(lambda: fault.lab.tool(LAST, "rabbitmq-upgrade", "revive"))
    fault.lab.tool(LAST, "rabbitmq-upgrade", "drain")

    def drained() -> bool:
        nodes = fault.ask("GET", "/api/nodes")
        return any(node["name"] == LAST_NAME and node.get("being_drained") for node in nodes)

    until(fault, f"{LAST_NAME} in maintenance", drained)
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="node-draining",
    rule="node-draining",
    summary="the third node is in maintenance mode: it accepts no clients and leads no queues",
    subject=Subject(kind="node", name=LAST_NAME, node=LAST_NAME),
    inject=inject,
    brokers=("4.0", "4.3"),
    nodes=3,
    alone=True,
    also=("quorum-queue-under-replicated", "listener-missing"),
)
