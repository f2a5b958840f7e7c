"""unreplicated-on-cluster: a durable classic queue in use on a cluster of three nodes."""

from pika import BasicProperties

from ackscope.findings import Subject
from lab.amqp import PERSISTENT
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.unreplicated-on-cluster"


def inject(fault: Fault) -> None:
    """Publish once a second, and consume."""
    fault.make_queue(QUEUE)
    consumer = fault.connect("fault-unreplicated-on-cluster-consumer").channel()
    consumer.basic_qos(prefetch_count=10)
    consumer.basic_consume(QUEUE, lambda channel, method, *_: channel.basic_ack(method.delivery_tag))
    publisher = fault.connect("fault-unreplicated-on-cluster").channel()
    publisher.confirm_delivery()
    for number, _ in enumerate(fault.ticks(1.0)):
        publisher.basic_publish("", QUEUE, b"unreplicated", BasicProperties(delivery_mode=PERSISTENT))
        if number == 0:
            fault.announce()


SPEC = FaultSpec(
    name="unreplicated-on-cluster",
    rule="unreplicated-on-cluster",
    summary="a durable classic queue is in use on a cluster of three nodes: it has one copy",
    subject=Subject(kind="vhost", name=""),
    inject=inject,
    nodes=3,
)
