"""Traffic whose messages carry the time at which they were published, so that the true age of a queue is known."""

import random
import threading
import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pika.adapters.blocking_connection import BlockingConnection

from ackscope.address import Address
from lab.amqp import LOST, connect, publish

_BEHIND = 0.5
_PREFETCH = 20

TYPES: Mapping[str, Mapping[str, Any]] = {
    "classic": {"x-queue-type": "classic"},
    "quorum": {"x-queue-type": "quorum"},
    "single-active": {"x-queue-type": "quorum", "x-single-active-consumer": True},
}
"""Kind of queue -> its arguments."""

_PLAN = ((30.0, 0.6), (40.0, 1.4), (40.0, 1.0), (20.0, 0.0), (30.0, 1.0), (40.0, 1.5), (30.0, 0.8))
"""Seconds, and speed of the consumers as a share of the publish rate: growing, draining, steady, standing still."""


@dataclass(slots=True)
class StampedQueue:
    """One queue, and what its clients know of it.

    Attributes:
        shift: seconds by which its plan of speeds is ahead of that of others.
        published: time of each publish, of the stamps.
        stamps: stamp of each settled message, in the order of the settlements.
        settled: time of each settlement.
    """

    kind: str
    rate: float
    shift: float
    published: list[float] = field(default_factory=list)
    stamps: list[float] = field(default_factory=list)
    settled: list[float] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Name of the queue at the broker."""
        return f"stamped.{self.kind}.{self.rate:g}"

    def true_age(self, at: float) -> float | None:
        """Return the age of the oldest message that was not settled at `at`; None if there was none."""
        left = bisect_right(self.settled, at)
        return at - self.published[left] if left < bisect_right(self.published, at) else None

    def sojourns(self, since: float, until: float) -> list[float]:
        """Return the time from publish to settlement of what was settled in a period."""
        here = range(bisect_right(self.settled, since), bisect_right(self.settled, until))
        return [self.settled[number] - self.stamps[number] for number in here]

    def speed(self, elapsed: float) -> float:
        """Return the speed of its consumers, as a share of the publish rate."""
        rest = (elapsed + self.shift) % sum(seconds for seconds, _ in _PLAN)
        for seconds, speed in _PLAN:
            if rest < seconds:
                return speed
            rest -= seconds
        return 1.0


def stamped_queues(kinds: Sequence[str], rates: Sequence[float]) -> list[StampedQueue]:
    """Return one queue for each kind and rate; their plans are shifted against each other."""
    pairs = [(kind, rate) for kind in kinds for rate in rates]
    return [StampedQueue(kind, rate, shift=17.0 * number) for number, (kind, rate) in enumerate(pairs)]


@contextmanager
def traffic(address: Address, queues: Sequence[StampedQueue], seed: int) -> Iterator[None]:
    """Declare the queues, and publish and consume while the block runs. A single-active queue has two consumers."""
    ending, began = threading.Event(), time.time()
    with connect(address, "stamped-declare") as connection:
        channel = connection.channel()
        for queue in queues:
            channel.queue_declare(queue.name, durable=True, arguments=dict(TYPES[queue.kind]))
    threads = []
    for number, queue in enumerate(queues):
        # Not for secrets: the gaps between messages.
        chance = random.Random(seed + number)  # noqa: S311  see above
        consumers = 2 if queue.kind == "single-active" else 1
        threads += [
            threading.Thread(target=_publish, args=(address, queue, ending, chance)),
            *(
                threading.Thread(target=_consume, args=(address, queue, ending, began, chance))
                for _ in range(consumers)
            ),
        ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ending.set()
        for thread in threads:
            thread.join()


def _gap(rate: float, chance: random.Random) -> float:
    return chance.uniform(0.5, 1.5) / rate


def _publish(address: Address, queue: StampedQueue, ending: threading.Event, chance: random.Random) -> None:
    with connect(address, f"{queue.name}.publisher") as connection:
        channel, due = connection.channel(), time.time()
        while not ending.is_set():
            now = time.time()
            publish(channel, queue.name, body=repr(now).encode())
            queue.published.append(now)
            due = max(due + _gap(queue.rate, chance), time.time() - _BEHIND)
            _wait(connection, due)


def _consume(
    address: Address, queue: StampedQueue, ending: threading.Event, began: float, chance: random.Random
) -> None:
    with connect(address, f"{queue.name}.consumer") as connection:
        channel, due = connection.channel(), time.time()
        channel.basic_qos(prefetch_count=_PREFETCH)
        try:
            for method, _, body in channel.consume(queue.name, inactivity_timeout=0.2):
                while not ending.is_set() and queue.speed(time.time() - began) == 0:
                    connection.sleep(0.2)
                    due = time.time()
                if ending.is_set():
                    break
                if method is None:
                    continue
                due = max(due + _gap(queue.rate * queue.speed(time.time() - began), chance), time.time() - _BEHIND)
                _wait(connection, due)
                channel.basic_ack(method.delivery_tag)
                queue.stamps.append(float(body))
                queue.settled.append(time.time())
        except LOST:
            ending.set()
            raise


def _wait(connection: BlockingConnection, due: float) -> None:
    """Wait; short waits do not serve the connection, which would take longer than they do."""
    seconds = due - time.time()
    if seconds > 0.05:
        connection.sleep(seconds)
    elif seconds > 0:
        time.sleep(seconds)
