"""heartbeat-loss: one of two consumers with automatic acknowledgement freezes, and the broker sends to it on.

The broker closes its connection after two to three heartbeats; the client reconnects and does the same again.
"""

import time

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.auto-ack-frozen"
_NAME = "fault-auto-ack-frozen"
_HEARTBEAT = 15
_RATE = 4.0
_SERVED_SECONDS = 10.0
_RECONNECT_SECONDS = 28.0


def inject(fault: Fault) -> None:
    """Publish four messages a second to two consumers; serve one of them for ten seconds only, again and again."""
    fault.make_queue(QUEUE)
    channel = publisher(fault, f"{_NAME}-publisher")
    healthy = fault.connect(f"{_NAME}-healthy", heartbeat=_HEARTBEAT).channel()
    healthy.basic_consume(QUEUE, lambda *_: None, auto_ack=True)
    opened, announced = 0.0, False
    connection = None
    for _ in fault.ticks(1 / _RATE):
        publish(channel, QUEUE)
        age = time.monotonic() - opened
        if connection is None or age >= _SERVED_SECONDS + _RECONNECT_SECONDS:
            opened = time.monotonic()
            connection = fault.connect(_NAME, served=False, heartbeat=_HEARTBEAT)
            connection.channel().basic_consume(QUEUE, lambda *_: None, auto_ack=True)
        elif age < _SERVED_SECONDS:
            connection.process_data_events(time_limit=0)
        elif not announced:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="auto-ack-frozen",
    rule="heartbeat-loss",
    summary="one of two consumers with automatic acknowledgement freezes after 10 s, and the broker sends to it on",
    subject=Subject(kind="connection", name=_NAME),
    inject=inject,
    also=("auto-ack-consumer",),
    apart=True,
    one_shot=False,
)
