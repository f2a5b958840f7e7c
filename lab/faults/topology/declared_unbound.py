"""Form of binding-missing: one of three queues alike is deleted and declared again, without its binding."""

import time

from ackscope.findings import Subject
from lab.amqp import publish
from lab.decoys.traffic import consume
from lab.faults.fault import Fault, FaultSpec

EXCHANGE = "fault.declared-unbound"
_QUEUES = tuple(f"{EXCHANGE}.node-{number}" for number in (1, 2, 3))
_RATE = 6.0
_BOUND_SECONDS = 45.0
"""The exporter must have read the bindings before: it reads them every 15 s, or less often on a busy machine."""


def inject(fault: Fault) -> None:
    """Publish to all three; then replace the last one, whose instance consumes again and gets nothing."""
    fault.make_exchange(EXCHANGE, "fanout")
    for name in _QUEUES:
        fault.make_queue(name)
        instance = fault.connect(name.replace(".", "-"))
        channel = consume(instance, name)
        channel.queue_bind(name, EXCHANGE)
    publisher, until = fault.connect("fault-declared-unbound-publisher").channel(), time.monotonic() + _BOUND_SECONDS
    replaced = False
    for _ in fault.ticks(1 / _RATE):
        publish(publisher, "", exchange=EXCHANGE)
        if not replaced and time.monotonic() >= until:
            channel.close()
            fault.make_queue(_QUEUES[-1])
            consume(instance, _QUEUES[-1])
            fault.announce()
            replaced = True


SPEC = FaultSpec(
    name="declared-unbound",
    rule="binding-missing",
    summary="a queue is deleted and declared again without its binding, and its siblings get the messages",
    subject=Subject(kind="queue", name=_QUEUES[-1]),
    inject=inject,
    also=("unreachable-queue", "queue-deleted"),
    one_shot=False,
)
