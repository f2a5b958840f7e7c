"""link-target-refuses: the target queue of a shovel is full and refuses, so the shovel requeues for ever.

Source: https://www.rabbitmq.com/docs/shovel-dynamic, https://www.rabbitmq.com/docs/maxlength#overflow-behaviour
"""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.cluster.nodes import until
from lab.faults.cluster.shovels import PLUGINS, shovel
from lab.faults.fault import Fault, FaultSpec

NAME = "fault.link-target-refuses"
TARGET = f"{NAME}.target"
_RATE, _LIMIT, _PROOF = 5.0, 10, 50


def inject(fault: Fault) -> None:
    """Publish to the source of a shovel whose target has room for a few messages and no consumer."""
    fault.make_queue(NAME)
    fault.make_queue(TARGET, {"x-max-length": _LIMIT, "x-overflow": "reject-publish"})
    channel = fault.connect("fault-link-target-refuses").channel()
    channel.confirm_delivery()
    publish(channel, NAME, 2 * _LIMIT)
    shovel(fault, NAME, NAME, TARGET)

    def circulates() -> bool:
        counters = fault.ask("GET", f"/api/queues/%2F/{NAME}").get("message_stats") or {}
        return bool(counters.get("redeliver", 0) > _PROOF)

    until(fault, "messages that the shovel requeues", circulates)
    fault.announce()
    for _ in fault.ticks(1 / _RATE):
        publish(channel, NAME)


SPEC = FaultSpec(
    name="link-target-refuses",
    rule="link-target-refuses",
    summary="the target of a shovel is full and refuses: the shovel requeues the same messages for ever",
    subject=Subject(kind="link", name=NAME),
    inject=inject,
    extra=PLUGINS,
    also=("pub-nacked-overflow", "no-consumer"),
)
