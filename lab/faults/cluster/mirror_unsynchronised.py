"""mirror-unsynchronised: a queue with messages gets mirrors that are not synchronised (ha-sync-mode is manual).

Source: https://www.rabbitmq.com/docs/3.13/ha#unsynchronised-mirrors
"""

from pika import BasicProperties

from ackscope.findings import Subject
from lab.amqp import PERSISTENT
from lab.faults.cluster.nodes import until
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.mirror-unsynchronised"
_POLICY = f"/api/policies/%2F/{QUEUE}"
_MESSAGES = 50


def inject(fault: Fault) -> None:
    """Publish to a classic queue, then mirror it by policy."""
    fault.make_queue(QUEUE)
    with fault.briefly("fault-mirror-unsynchronised") as channel:
        channel.confirm_delivery()
        for _ in range(_MESSAGES):
            channel.basic_publish("", QUEUE, b"mirror", BasicProperties(delivery_mode=PERSISTENT))
    document = {"pattern": f"^{QUEUE}$", "definition": {"ha-mode": "all"}, "apply-to": "queues", "priority": 100}
    fault.later(lambda: fault.ask("DELETE", _POLICY))
    fault.ask("PUT", _POLICY, document)

    def unfilled() -> bool:
        queues = [queue for queue in fault.ask("GET", "/api/queues") if queue["name"] == QUEUE]
        return any(len(q.get("slave_nodes") or ()) > len(q.get("synchronised_slave_nodes") or ()) for q in queues)

    until(fault, "unsynchronised mirrors", unfilled)
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="mirror-unsynchronised",
    rule="mirror-unsynchronised",
    summary="mirrors are added to a queue with messages and are not synchronised",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    brokers=("3.10",),
    nodes=2,
    also=("no-consumer", "orphan-queue"),
)
