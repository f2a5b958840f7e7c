"""A form of pub-nacked-overflow: two stages of a pipeline repeat what a full queue refuses, and hold their messages.

The last queue has no consumer, so it is the cause of what happens in the two queues before it.
Source: https://www.rabbitmq.com/docs/maxlength#overflow-behaviour
"""

from typing import Any

from pika import BasicProperties
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import NackError

from ackscope.findings import Subject
from lab.amqp import PERSISTENT, publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUES = tuple(f"fault.full-queues-in-a-row.{place}" for place in ("in", "checked", "out"))
_LIMITS, _PREFETCH = (None, 40, 20), 10
_TICK, _AGAIN, _PROOF = 0.1, 5, 4
"""Seconds between two messages, ticks after a refusal, and refusals of each stage until the fault is in effect."""


class _Stage:
    """Consumes from one queue and publishes to the next one; acknowledges what that one has stored."""

    def __init__(self, fault: Fault, name: str, reads: str, writes: str) -> None:
        connection = fault.connect(name)
        self._held: list[int] = []
        self._writes = writes
        self._in, self._out = connection.channel(), connection.channel()
        self._out.confirm_delivery()
        self._in.basic_qos(prefetch_count=_PREFETCH)
        self._in.basic_consume(reads, self._keep, consumer_tag=name)
        self._pause = 0
        self.refused = 0

    def _keep(self, _channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        self._held.append(method.delivery_tag)

    def work(self) -> None:
        """Pass on the oldest message; wait some ticks after a refusal."""
        if self._pause or not self._held:
            self._pause = max(0, self._pause - 1)
            return
        try:
            self._out.basic_publish("", self._writes, b"stage", BasicProperties(delivery_mode=PERSISTENT))
        except NackError:
            self._pause, self.refused = _AGAIN, self.refused + 1
        else:
            self._in.basic_ack(self._held.pop(0))


def inject(fault: Fault) -> None:
    """Fill the last queue first; then the one before it is full, and the first one grows."""
    for name, limit in zip(QUEUES, _LIMITS, strict=True):
        fault.make_queue(name, {"x-max-length": limit, "x-overflow": "reject-publish"} if limit else None)
    source = publisher(fault, "fault-full-queues-in-a-row-publisher")
    stages = [
        _Stage(fault, f"fault-full-queues-in-a-row-{place + 1}", QUEUES[place], QUEUES[place + 1]) for place in (0, 1)
    ]
    announced = False
    for _ in fault.ticks(_TICK):
        publish(source, QUEUES[0])
        for stage in stages:
            stage.work()
        if not announced and min(stage.refused for stage in stages) >= _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="full-queues-in-a-row",
    rule="pub-nacked-overflow",
    summary="the last queue of a pipeline is full and has no consumer, so the stages before it stand still",
    subject=Subject(kind="queue", name=QUEUES[-1]),
    inject=inject,
    client="fault-full-queues-in-a-row-2",
    also=("mixed-connection",),
)
