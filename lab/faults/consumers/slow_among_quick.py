"""prefetch-hoarder within a prefetch: one of three consumers is slow, and what it was sent waits behind its work."""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.decoys.traffic import consume
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.slow-among-quick"
_RATE, _PREFETCH, _EVERY, _PROOF = 15.0, 30, 45, 20


def inject(fault: Fault) -> None:
    """Publish at a constant rate; the slow consumer acknowledges one message every 3 s."""
    fault.make_queue(QUEUE)
    channel = publisher(fault, "fault-slow-among-quick-publisher")
    slow = fault.connect("fault-slow-among-quick").channel()
    slow.basic_qos(prefetch_count=_PREFETCH)
    held: list[int] = []

    def take(_inner: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        held.append(method.delivery_tag)

    slow.basic_consume(QUEUE, take)
    for number in (1, 2):
        consume(fault.connect(f"fault-slow-among-quick-{number}"), QUEUE, _PREFETCH)
    announced = False
    for sent, _ in enumerate(fault.ticks(1 / _RATE)):
        publish(channel, QUEUE)
        if held and sent % _EVERY == 0:
            slow.basic_ack(held.pop(0))
        if not announced and len(held) >= _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="slow-among-quick",
    rule="prefetch-hoarder",
    summary="one of three consumers acknowledges one message every 3 s and holds its prefetch of 30",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    also=("stale-head",),
    one_shot=False,
)
