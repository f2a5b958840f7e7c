"""classic-queue-node-down: the node of three classic queues is stopped; the rest of the cluster works.

Source: https://www.rabbitmq.com/docs/clustering
"""

from pika.exceptions import NackError

from ackscope.address import parse_amqp
from ackscope.findings import Subject
from lab.amqp import connect, publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import writer

QUEUES = tuple(f"fault.classic-queue-node-down.{number}" for number in (1, 2, 3))
_DOWN = 1


def inject(fault: Fault) -> None:
    """Declare the queues through the second node, stop it, and publish through the first node, which nacks."""
    other = fault.lab.nodes[_DOWN]
    away = connect(parse_amqp(other.amqp), "fault-classic-queue-node-down-setup")
    setup = away.channel()
    for name in QUEUES:
        setup.queue_declare(name, durable=True, arguments={"x-queue-type": "classic"})
        publish(setup, name)
    fault.later(lambda: _delete(fault))
    away.close()
    fault.later(lambda: fault.lab.ctl(_DOWN, "start_app"))
    fault.lab.ctl(_DOWN, "stop_app")
    channel = writer(fault, QUEUES[0])
    announced = False
    for _ in fault.ticks(0.5):
        try:
            publish(channel, QUEUES[0])
        except NackError:
            if not announced:
                fault.announce()
                announced = True


def _delete(fault: Fault) -> None:
    with fault.briefly("fault-cleanup") as channel:
        for name in QUEUES:
            channel.queue_delete(name)


SPEC = FaultSpec(
    name="classic-queue-node-down",
    rule="classic-queue-node-down",
    summary="the node of three classic queues is stopped: messages published to them are nacked",
    subject=Subject(kind="node", name=""),
    inject=inject,
    brokers=("4.0", "4.3"),
    nodes=2,
    alone=True,
    also=("node-down",),
)
