"""leader-imbalance: one node leads all quorum queues, because they were declared through it, and has all their traffic.

Source: https://www.rabbitmq.com/docs/quorum-queues#leader-placement
"""

from typing import Any

from pika import BasicProperties
from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import PERSISTENT
from lab.faults.cluster.nodes import until
from lab.faults.fault import Fault, FaultSpec

NAME = "fault.leader-imbalance"
QUEUES = tuple(f"{NAME}.{number}" for number in range(1, 13))
FIRST_NAME = "lab1@localhost"


def inject(fault: Fault) -> None:
    """Declare the queues through the first node, and publish and ack a message a second on each."""
    for name in QUEUES:
        fault.make_queue(name, {"x-queue-type": "quorum", "x-queue-leader-locator": "client-local"})
    until(fault, "all leaders on one node", lambda: _led(fault) == len(QUEUES))
    publisher = fault.connect("fault-leader-imbalance-publisher").channel()
    publisher.confirm_delivery()
    consumer = fault.connect("fault-leader-imbalance").channel()

    def take(channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        channel.basic_ack(method.delivery_tag)

    consumer.basic_qos(prefetch_count=20)
    for name in QUEUES:
        consumer.basic_consume(name, take)
    announced = False
    for _ in fault.ticks(1.0):
        for name in QUEUES:
            publisher.basic_publish("", name, b"imbalance", BasicProperties(delivery_mode=PERSISTENT))
        if not announced:
            fault.announce()
            announced = True


def _led(fault: Fault) -> int:
    queues = fault.ask("GET", "/api/queues")
    return sum(queue["name"] in QUEUES and queue.get("leader") == FIRST_NAME for queue in queues)


SPEC = FaultSpec(
    name="leader-imbalance",
    rule="leader-imbalance",
    summary="one node leads all twelve quorum queues and carries all their traffic",
    subject=Subject(kind="node", name=FIRST_NAME, node=FIRST_NAME),
    inject=inject,
    nodes=3,
    also=("quorum-queue-without-dlx",),
)
