"""Publishers and consumers of queue faults."""

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from lab.amqp import publish
from lab.faults.fault import Fault


@dataclass(slots=True)
class Reader:
    """A consumer that acks at most one message per `every` seconds.

    Attributes:
        channel: channel of the consumer.
        acked: number of acked messages.
    """

    channel: BlockingChannel
    every: float
    acked: int = 0
    _held: deque[int] = field(default_factory=deque)
    _next: float = 0.0

    def take(self, _channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        """Store a delivery."""
        self._held.append(method.delivery_tag)

    def work(self) -> None:
        """Ack the messages that are due; call it often."""
        now = time.monotonic()
        while self._held and now >= self._next:
            self.channel.basic_ack(self._held.popleft())
            self.acked += 1
            self._next = max(self._next + self.every, now - 1.0)


def reader(fault: Fault, queue: str, *, every: float, prefetch: int) -> Reader:
    """Consume from a queue, at most one message per `every` seconds."""
    channel = fault.connect(f"{queue.replace('fault.', 'fault-')}-consumer").channel()
    channel.basic_qos(prefetch_count=prefetch)
    made = Reader(channel, every)
    channel.basic_consume(queue, made.take, consumer_tag=f"{queue}.consumer")
    return made


@dataclass(slots=True)
class Rejecter:
    """A consumer that acks every other message and rejects the rest without requeue.

    Attributes:
        rejected: number of rejected messages.
    """

    rejected: int = 0

    def take(self, channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        """Ack or reject a delivery."""
        if method.delivery_tag % 2:
            channel.basic_ack(method.delivery_tag)
        else:
            self.rejected += 1
            channel.basic_reject(method.delivery_tag, requeue=False)


def rejecter(fault: Fault, queue: str, name: str) -> Rejecter:
    """Consume from a queue and reject half of the messages; `name` is the name of the connection."""
    channel = fault.connect(name).channel()
    made = Rejecter()
    channel.basic_qos(prefetch_count=10)
    channel.basic_consume(queue, made.take, consumer_tag=f"{queue}.consumer")
    return made


def reject_half(
    fault: Fault, work: str, dead_letters: str, arguments: dict[str, object], *, rate: float, proof: int
) -> None:
    """Publish to a queue whose consumer rejects every other message; they are dead-lettered to another queue.

    Args:
        fault: announced after `proof` rejects.
        work: name of the queue that is consumed.
        dead_letters: name of the queue that takes what is rejected.
        arguments: those of the queue of dead letters.
        rate: messages published per second.
        proof: see `fault`.
    """
    fault.make_queue(dead_letters, arguments)
    fault.make_queue(work, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead_letters})
    channel = writer(fault, work)
    consumer = rejecter(fault, work, f"{dead_letters.replace('fault.', 'fault-')}-consumer")
    announced = False
    for _ in fault.ticks(1 / rate):
        publish(channel, work)
        if not announced and consumer.rejected >= proof:
            fault.announce()
            announced = True


def writer(fault: Fault, queue: str) -> BlockingChannel:
    """Return a channel in confirm mode on a new connection."""
    channel = fault.connect(f"{queue.replace('fault.', 'fault-')}-publisher").channel()
    channel.confirm_delivery()
    return channel
