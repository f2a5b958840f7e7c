"""Subscriptions that come and go: a client binds a key for each session and unbinds it at its end."""

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec

_NAME = "fault.decoy.subscriptions"
_STOCK, _EACH = 700, 10


def inject(fault: Fault) -> None:
    """Keep 700 bindings and replace ten of them every second."""
    fault.make_queue(_NAME)
    channel = fault.connect("decoy-subscriptions").channel()
    channel.exchange_declare(_NAME, "topic", durable=True)
    fault.later(lambda: _delete(fault))
    channel.basic_consume(_NAME, lambda inner, method, *_: inner.basic_ack(method.delivery_tag))
    for number in range(_STOCK):
        channel.queue_bind(_NAME, _NAME, f"session.{number}")
    fault.announce()
    last = _STOCK
    for _ in fault.ticks(1.0):
        for number in range(last, last + _EACH):
            channel.queue_bind(_NAME, _NAME, f"session.{number}")
            channel.queue_unbind(_NAME, _NAME, f"session.{number - _STOCK}")
        last += _EACH


def _delete(fault: Fault) -> None:
    with fault.briefly("fault-cleanup") as channel:
        channel.exchange_delete(_NAME)


SPEC = FaultSpec(
    name="decoy.subscriptions",
    rule="",
    summary="a client binds a key for each session and unbinds it at its end",
    subject=Subject(kind="exchange", name=_NAME),
    inject=inject,
)
