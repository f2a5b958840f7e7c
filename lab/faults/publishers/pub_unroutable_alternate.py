"""pub-unroutable-alternate: an exchange cannot route its messages, and nobody takes them behind its alternate exchange.

Source: https://www.rabbitmq.com/docs/ae
"""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.pub-unroutable-alternate"
_RATE = 6.0


def keep_unroutable(fault: Fault, name: str) -> None:
    """Declare an exchange without a binding, whose alternate exchange sends all its messages to a queue."""
    fault.make_queue(name)
    with fault.briefly(f"{name}.setup") as channel:
        channel.exchange_declare(f"{name}.else", "fanout", durable=True)
        channel.exchange_declare(name, "direct", durable=True, arguments={"alternate-exchange": f"{name}.else"})
        fault.later(lambda: _delete(fault, name))
        channel.queue_bind(name, f"{name}.else", "")


def inject(fault: Fault) -> None:
    """Publish with a key that nobody bound."""
    keep_unroutable(fault, QUEUE)
    channel = fault.connect("fault-pub-unroutable-alternate").channel()
    channel.confirm_delivery()
    for number, _ in enumerate(fault.ticks(1 / _RATE)):
        publish(channel, "nobody", exchange=QUEUE)
        if number == 1:
            fault.announce()


def _delete(fault: Fault, name: str) -> None:
    with fault.briefly(f"{name}.cleanup") as channel:
        channel.exchange_delete(name)
        channel.exchange_delete(f"{name}.else")


SPEC = FaultSpec(
    name="pub-unroutable-alternate",
    rule="pub-unroutable-alternate",
    summary="no binding matches the messages of an exchange: its alternate exchange keeps them, and nobody takes them",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
)
