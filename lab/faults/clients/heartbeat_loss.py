"""heartbeat-loss: a client that processes messages for so long that it does not serve its connection.

The broker closes the connection after two missed heartbeats; the client reconnects and does the same again.
"""

import time

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec

NAME = "fault-heartbeat-loss"
_HEARTBEAT = 15
_SERVED_SECONDS = 10.0
_RECONNECT_SECONDS = 25.0


def inject(fault: Fault) -> None:
    """Serve a connection for ten seconds, then stop; open the next one shortly before the broker closes it."""
    opened = time.monotonic()
    connection = fault.connect(NAME, served=False, heartbeat=_HEARTBEAT)
    connection.channel()
    announced = False
    for _ in fault.ticks(0.5):
        age = time.monotonic() - opened
        if age < _SERVED_SECONDS:
            connection.process_data_events(time_limit=0)
        elif not announced:
            fault.announce()
            announced = True
        if age >= _SERVED_SECONDS + _RECONNECT_SECONDS:
            opened = time.monotonic()
            connection = fault.connect(NAME, served=False, heartbeat=_HEARTBEAT)
            connection.channel()


SPEC = FaultSpec(
    name="heartbeat-loss",
    rule="heartbeat-loss",
    summary="a client stops serving its connection after 10 s, and the broker closes it for missing heartbeats",
    subject=Subject(kind="connection", name=NAME),
    inject=inject,
    apart=True,
    one_shot=False,
)
