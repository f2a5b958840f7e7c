"""binding-leak: a client binds its queue with a new routing key again and again, and unbinds none."""

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec

NAME = "fault.binding-leak"
_STOCK, _EACH, _MOST = 700, 10, 15_000


def inject(fault: Fault) -> None:
    """Bind 700 keys, then ten more a second."""
    fault.make_queue(NAME)
    channel = fault.connect("fault-binding-leak").channel()
    channel.exchange_declare(NAME, "direct", durable=True)
    fault.later(lambda: _delete(fault))
    channel.basic_consume(NAME, lambda inner, method, *_: inner.basic_ack(method.delivery_tag))
    bound = 0
    while bound < _STOCK:
        channel.queue_bind(NAME, NAME, f"device.{bound}")
        bound += 1
    fault.announce()
    for _ in fault.ticks(1.0):
        for _ in range(_EACH if bound < _MOST else 0):
            channel.queue_bind(NAME, NAME, f"device.{bound}")
            bound += 1


def _delete(fault: Fault) -> None:
    with fault.briefly("fault-cleanup") as channel:
        channel.exchange_delete(NAME)


SPEC = FaultSpec(
    name="binding-leak",
    rule="binding-leak",
    summary="a client binds its queue with ten new routing keys a second and unbinds none",
    subject=Subject(kind="exchange", name=NAME),
    inject=inject,
)
