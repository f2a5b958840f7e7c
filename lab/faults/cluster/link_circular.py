"""link-circular: two shovels move the same messages to and fro.

Source: https://www.rabbitmq.com/docs/shovel-dynamic
"""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.cluster.nodes import until
from lab.faults.cluster.shovels import PLUGINS, shovel
from lab.faults.fault import Fault, FaultSpec

NAME = "fault.link-circular"
OTHER = f"{NAME}.other"
_MESSAGES, _PROOF = 5, 50


def inject(fault: Fault) -> None:
    """Publish a few messages to one of two queues; each is the source of one shovel and the target of the other."""
    fault.make_queue(NAME)
    fault.make_queue(OTHER)
    with fault.briefly("fault-link-circular") as channel:
        channel.confirm_delivery()
        publish(channel, NAME, _MESSAGES)
    shovel(fault, NAME, NAME, OTHER)
    shovel(fault, OTHER, OTHER, NAME)

    def circulates() -> bool:
        counters = fault.ask("GET", f"/api/queues/%2F/{NAME}").get("message_stats") or {}
        return bool(counters.get("ack", 0) > _PROOF)

    until(fault, "messages that circulate", circulates)
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="link-circular",
    rule="link-circular",
    summary="two shovels move the same messages to and fro between two queues",
    subject=Subject(kind="link", name=NAME),
    inject=inject,
    extra=PLUGINS,
    also=("pub-credit-flow",),
)
