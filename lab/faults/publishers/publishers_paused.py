"""publishers-paused: the free disk limit is above the free space twice for 12 s; then all is well again.

Source: https://www.rabbitmq.com/docs/disk-alarms
"""

import threading
import time
from itertools import cycle

from ackscope.errors import BrokerError
from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec
from lab.faults.nodes.inside import node

_CLIENTS = ("fault-publishers-paused-tills", "fault-publishers-paused-web")
_QUEUES = ("fault.publishers-paused.tills", "fault.publishers-paused.web")
_RATE = 20.0
_STEADY, _ALARM, _BETWEEN = 50.0, 12.0, 20.0
"""Seconds of a steady load before the first alarm, of each alarm, and after each."""


def inject(fault: Fault) -> None:
    """Publish with two applications, and let the alarm come and go twice meanwhile."""
    before = node(fault)["disk_free_limit"]
    channels = []
    for client, queue in zip(_CLIENTS, _QUEUES, strict=True):
        fault.make_queue(queue, {"x-max-length": 100})
        channels.append(fault.connect(client).channel())
    fault.later(lambda: fault.lab.ctl(0, "set_disk_free_limit", str(before)))
    alarms = threading.Thread(target=_alarms, args=(fault, str(before)))
    announced, blocked = False, set()
    for place, channel in enumerate(channels):
        channel.connection.add_on_connection_blocked_callback(lambda *_, place=place: blocked.add(place))
        channel.connection.add_on_connection_unblocked_callback(lambda *_, place=place: blocked.discard(place))
    alarms.start()
    for _, place in zip(fault.ticks(0.5 / _RATE), cycle(range(len(channels))), strict=False):
        if place not in blocked:
            channels[place].basic_publish("", _QUEUES[place], b"paused")
        if not announced and not alarms.is_alive():
            fault.announce()
            announced = True
    alarms.join()


def _alarms(fault: Fault, before: str) -> None:
    until = time.monotonic()
    for seconds, limit in (
        (_STEADY, "9000GB"),
        (_ALARM, before),
        (_BETWEEN, "9000GB"),
        (_ALARM, before),
        (_BETWEEN, ""),
    ):
        until += seconds
        if fault.ending.wait(max(0.0, until - time.monotonic())):
            return
        if limit:
            try:
                fault.lab.ctl(0, "set_disk_free_limit", limit)
            except BrokerError:
                return


SPEC = FaultSpec(
    name="publishers-paused",
    rule="publishers-paused",
    summary="a disk alarm comes twice for 12 s and is over: all publishers stood still together",
    subject=Subject(kind="cluster", name=""),
    client=_CLIENTS[0],
    inject=inject,
    alone=True,
    also=("disk-alarm", "pub-blocked-by-alarm"),
)
