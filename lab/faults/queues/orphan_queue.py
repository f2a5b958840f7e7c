"""orphan-queue: an exchange routes to two queues, and the second one never had a consumer."""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import reader, writer

QUEUE = "fault.orphan-queue"
READ = "fault.orphan-queue.read"
EXCHANGE = "fault.orphan-queue"
_RATE, _PROOF = 4.0, 10


def inject(fault: Fault) -> None:
    """Publish to the exchange; consume from the first queue only."""
    fault.make_queue(QUEUE)
    fault.make_queue(READ)
    fault.make_exchange(EXCHANGE, "fanout")
    with fault.briefly("fault-orphan-queue-setup") as setup:
        for name in (QUEUE, READ):
            setup.queue_bind(name, EXCHANGE)
    channel, taker = writer(fault, QUEUE), reader(fault, READ, every=0.01, prefetch=20)
    announced = False
    for _ in fault.ticks(1 / _RATE):
        publish(channel, "", exchange=EXCHANGE)
        taker.work()
        if not announced and taker.acked >= _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="orphan-queue",
    rule="orphan-queue",
    summary="an exchange routes to two queues, and the second one never had a consumer",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    also=("no-consumer",),
)
