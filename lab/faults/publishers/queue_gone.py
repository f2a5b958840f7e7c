"""pub-unroutable-dropped: a queue that was not durable went with the node, and its binding with it.

Its exchange and its publisher are there again. Its client does not declare the queue: each time it consumes, it gets an
error (404). The restart itself is not played; the queue has never been there since.
Source: https://www.rabbitmq.com/docs/queues#durability
"""

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.clients.again import refused
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

EXCHANGE, QUEUE = "fault.tariff.changes", "fault.tariff.cache"
_CLIENT = "fault-queue-gone-after-restart"
_EVERY, _BURST, _NOT_FOUND = 2.0, 23, 404


def inject(fault: Fault) -> None:
    """Publish to an exchange without bindings, and ask for the queue that was bound to it every 2 s."""
    fault.make_exchange(EXCHANGE, "topic")
    channel = publisher(fault, f"{_CLIENT}-publisher")

    def ask(asking: BlockingChannel) -> None:
        publish(channel, "tariff.changed", _BURST, exchange=EXCHANGE)
        asking.basic_consume(QUEUE, lambda *_: None)

    refused(fault, _CLIENT, _NOT_FOUND, ask, every=_EVERY)


SPEC = FaultSpec(
    name="queue-gone-after-restart",
    rule="pub-unroutable-dropped",
    summary="an exchange has no binding, and a client asks every 2 s for the queue that was bound to it (404)",
    subject=Subject(kind="exchange", name=EXCHANGE),
    inject=inject,
    client=f"{_CLIENT}-publisher",
    apart=True,
    also=("channel-churn", "pub-missing-exchange"),
)
