"""restart-loss: transient messages wait in a durable classic queue, and the node is restarted.

Source: https://www.rabbitmq.com/docs/persistence-conf
"""

import time

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.restart-loss"
MESSAGES = 200
_TRANSIENT = 1
_SETTLED = 16.0
"""Seconds until the statistics show the messages in two polls."""


def inject(fault: Fault) -> None:
    """Publish 200 transient messages, restart the node, and announce the fault once it answers again."""
    fault.make_queue(QUEUE)
    with fault.briefly(f"{QUEUE}-publisher") as channel:
        channel.confirm_delivery()
        publish(channel, QUEUE, MESSAGES, delivery_mode=_TRANSIENT)
    time.sleep(_SETTLED)
    fault.lab.kill(0)
    fault.lab.restart(0)
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="restart-loss",
    rule="restart-loss",
    summary="200 transient messages of a durable queue are lost by a restart of the node",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    alone=True,
    wrecks=True,
    also=("node-restarted", "pub-transient-in-durable"),
    one_shot=False,
)
