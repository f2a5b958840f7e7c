"""link-down: a shovel whose destination does not respond.

Source: https://www.rabbitmq.com/docs/shovel-dynamic
"""

from ackscope.findings import Subject
from lab.faults.cluster.nodes import until
from lab.faults.fault import Fault, FaultSpec
from lab.node import Extra

NAME = "fault.link-down"
_PATH = f"/api/parameters/shovel/%2F/{NAME}"
_NOBODY = "amqp://127.0.0.1:1"
"""No server listens on this port."""


_STARTS = 5.0


def inject(fault: Fault) -> None:
    """Create a shovel from a queue to a destination that does not exist."""
    fault.make_queue(NAME)
    value = {"src-uri": "amqp://", "src-queue": NAME, "dest-uri": _NOBODY, "dest-queue": NAME}
    fault.later(lambda: fault.ask("DELETE", _PATH))
    fault.ask("PUT", _PATH, {"value": value})

    # A working shovel runs within two seconds; before 4.3 a failing one reports "starting" forever.
    fault.ending.wait(_STARTS)

    def fails() -> bool:
        return any(each.get("state") != "running" for each in fault.ask("GET", "/api/shovels") if each["name"] == NAME)

    until(fault, "a shovel that does not run", fails)
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="link-down",
    rule="link-down",
    summary="a shovel whose destination does not respond",
    subject=Subject(kind="link", name=NAME),
    inject=inject,
    extra=Extra(plugins=("rabbitmq_shovel_management",)),
)
