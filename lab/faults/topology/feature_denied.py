"""feature-denied: a client declares a queue with a denied deprecated feature, loses its connection, and reconnects."""

import pika.exceptions

from ackscope.errors import BrokerError
from ackscope.findings import Subject
from lab.amqp import connect
from lab.faults.clients.again import PROOF
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.feature-denied"
_EVERY = 0.7
_INTERNAL_ERROR = 541


def inject(fault: Fault) -> None:
    """Declare a queue with `x-queue-master-locator`, which 4.3 denies by default."""
    arguments = {"x-queue-type": "classic", "x-queue-master-locator": "client-local"}
    for times, _ in enumerate(fault.ticks(_EVERY), start=1):
        connection = connect(fault.address, "fault-feature-denied")
        try:
            connection.channel().queue_declare(QUEUE, durable=True, arguments=arguments)
        except pika.exceptions.ConnectionClosedByBroker as error:
            if error.reply_code != _INTERNAL_ERROR:
                raise BrokerError(f"expected error {_INTERNAL_ERROR}, got {error.reply_code}") from None
        else:
            raise BrokerError("the broker accepted a queue with a denied feature")
        if times == PROOF:
            fault.announce()


SPEC = FaultSpec(
    name="feature-denied",
    rule="feature-denied",
    summary="a client declares a queue with a denied argument and reconnects each time the broker ends its connection",
    subject=Subject(kind="cluster", name=""),
    inject=inject,
    brokers=("4.3",),
    apart=True,
)
