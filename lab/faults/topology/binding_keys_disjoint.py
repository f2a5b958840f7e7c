"""binding-keys-disjoint: one exchange passes `order.#` to another, which passes only `orders.#` to the queue."""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec

NAME = "fault.binding-keys-disjoint"
_FIRST, _RATE = f"{NAME}.first", 8.0


def inject(fault: Fault) -> None:
    """Publish 8 messages a second to the first exchange, which also routes them to a queue that is read."""
    read = f"{NAME}.read"
    for queue in (NAME, read):
        fault.make_queue(queue)
    for exchange in (_FIRST, NAME):
        fault.make_exchange(exchange, "topic")
    with fault.briefly("fault-binding-keys-disjoint.setup") as channel:
        channel.queue_bind(read, _FIRST, "order.#")
        channel.exchange_bind(NAME, _FIRST, "order.#")
        channel.queue_bind(NAME, NAME, "orders.#")
    consumer = fault.connect("fault-binding-keys-disjoint-consumer").channel()
    for queue in (NAME, read):
        consumer.basic_consume(queue, lambda channel, method, *_: channel.basic_ack(method.delivery_tag))
    publisher = fault.connect("fault-binding-keys-disjoint").channel()
    publisher.confirm_delivery()
    for number, _ in enumerate(fault.ticks(1 / _RATE)):
        publish(publisher, "order.placed", exchange=_FIRST)
        if number == 1:
            fault.announce()


SPEC = FaultSpec(
    name="binding-keys-disjoint",
    rule="binding-keys-disjoint",
    summary="an exchange passes `order.#` to another one, which passes `orders.#` to the queue: no message can arrive",
    subject=Subject(kind="exchange", name=NAME),
    inject=inject,
    one_shot=False,
)
