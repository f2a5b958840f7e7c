"""auto-ack-consumer: a consumer with automatic acknowledgement is sent a backlog of 400 and ends."""

from ackscope.findings import Subject
from lab.amqp import connect, publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.auto-ack-ends"
_BACKLOG, _LIVES, _RATE = 400, 8, 2.0


def inject(fault: Fault) -> None:
    """Publish a backlog; consume it for some seconds, and end; publish on."""
    fault.make_queue(QUEUE)
    channel = publisher(fault, "fault-auto-ack-ends-publisher")
    publish(channel, QUEUE, _BACKLOG)
    doomed = None
    for tick, _ in enumerate(fault.ticks(1 / _RATE)):
        publish(channel, QUEUE)
        if tick == 2 * _LIVES * _RATE:
            doomed = connect(fault.address, "fault-auto-ack-ends")
            doomed.channel().basic_consume(QUEUE, lambda *_: None, auto_ack=True)
        elif doomed is not None and tick == 3 * _LIVES * _RATE:
            doomed.close()
            doomed = None
            fault.announce()
        elif doomed is not None:
            doomed.process_data_events(time_limit=0)


SPEC = FaultSpec(
    name="auto-ack-ends",
    rule="auto-ack-consumer",
    summary="a consumer with automatic acknowledgement is sent a backlog at once and ends",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    also=("no-consumer",),
    one_shot=False,
)
