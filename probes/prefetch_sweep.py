"""The prefetch sweep: measures a consumer with a given processing time at several prefetch values.

The consumer processes one message at a time, like a single thread. It simulates work by waiting, so that the event loop
stays free. For every value the queue starts with more messages than can be processed.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ackscope.errors import Unreachable
from probes.catalogue.prefetch import PROBE
from probes.payload import PayloadWriter
from probes.probe_connection import ProbeConnection
from probes.probe_stream import StreamContext
from probes.queues import QueueSpec
from probes.recent_values import RecentValues
from probes.saturation import PrefetchAdvice, SweepPoint, advise

NAME = PROBE.name
MOST_MESSAGES = 6000
"""Maximum number of messages in the queue."""

_BYTES = 64
_FASTEST = 0.0002
_BEYOND = 2000
_ROUND_TRIPS = 21
_IN_FLIGHT = 256
_CONFIRM_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class Sweep:
    """Results of all prefetch values for one queue type; `round_trip` is in seconds."""

    queue_type: str
    round_trip: float
    points: Sequence[SweepPoint]
    advice: PrefetchAdvice


class _Worker:
    def __init__(self, link: ProbeConnection, processing: float) -> None:
        self._link, self._processing = link, processing
        self._loop = asyncio.get_running_loop()
        self._held: deque[tuple[int, float]] = deque()
        self._working = False
        self._stopped = False
        self.unacked, self.wait = RecentValues(unit=1.0, span=None), RecentValues(span=None)
        self.began: float | None = None
        self.ended = self.busy = 0.0
        self.done = 0

    def deliver(self, tag: int, body: bytes, at: float, *, redelivered: bool) -> None:  # noqa: ARG002  a link's contract
        """Add a delivery to the messages to process."""
        self._held.append((tag, at))
        if self.began is None:
            self.began = at
        if not self._working:
            self._next()

    def stop(self) -> None:
        """Process no more messages."""
        self._stopped = True

    def _next(self) -> None:
        self._working = bool(self._held) and not self._stopped
        if self._working:
            tag, at = self._held.popleft()
            now = self._loop.time()
            self.wait.record(max(0.0, now - at), now)
            self._loop.call_at(now + self._processing, self._finish, tag, now)

    def _finish(self, tag: int, began: float) -> None:
        now = self._loop.time()
        if self._stopped or not self._link.alive:
            return
        self.unacked.record(len(self._held) + 1, now)
        self._link.ack(tag)
        self.busy += now - began
        self.ended = now
        self.done += 1
        self._next()


class PrefetchSweep:
    """Measures prefetch values on its own queue, which the caller deletes afterwards.

    Args:
        processing: seconds of work per message.
        each: seconds per prefetch value.
    """

    def __init__(self, context: StreamContext, queue_type: str, processing: float, each: float) -> None:
        self._server = context.server
        self._writer = PayloadWriter(context.run_id, 1, _BYTES)
        self._processing, self._each = processing, each
        self.queue: QueueSpec = replace(
            context.queue(NAME, queue_type, queue_type), extra={"x-max-length": MOST_MESSAGES}
        )

    async def run(self, prefetches: Sequence[int]) -> Sweep:
        """Measure every value; 0 is unlimited.

        Raises:
            BrokerError: the broker could not be used.
        """
        publisher = await ProbeConnection.open(self._server, f"ackscope-probe {NAME}")
        try:
            await publisher.declare(self.queue)
            trips = sorted([await publisher.round_trip(self.queue.name) for _ in range(_ROUND_TRIPS)])
            fill = _Fill(publisher, self.queue, self._writer)
            await fill.prepare()
            points = []
            for prefetch in prefetches:
                await publisher.purge(self.queue.name)
                await fill.add(self._needed(prefetch))
                points.append(await self._point(prefetch))
        finally:
            await publisher.close()
        round_trip = trips[len(trips) // 2]
        return Sweep(self.queue.queue_type, round_trip, points, advise(points, round_trip, self._processing))

    def _needed(self, prefetch: int) -> int:
        worked = int(self._each / max(_FASTEST, self._processing)) + 1
        return min(MOST_MESSAGES, worked + (prefetch or _BEYOND))

    async def _point(self, prefetch: int) -> SweepPoint:
        consumer = await ProbeConnection.open(self._server, f"ackscope-probe {NAME}")
        worker = _Worker(consumer, self._processing)
        try:
            await consumer.consume(self.queue.name, prefetch, worker.deliver)
            await asyncio.wait({consumer.closed}, timeout=self._each)
            if consumer.closed.done():
                raise consumer.closed.result()
        finally:
            worker.stop()
            await consumer.close()
        seconds = 0.0 if worker.began is None else max(0.0, worker.ended - worker.began)
        unacked, wait = worker.unacked.summary(0.0), worker.wait.summary(0.0)
        return SweepPoint(
            prefetch=prefetch,
            messages=worker.done,
            seconds=seconds,
            busy=worker.busy / seconds if seconds else 0.0,
            unacked_p50=unacked.p50,
            unacked_max=unacked.max,
            wait_p50=wait.p50,
            wait_p99=wait.p99,
            work=worker.busy / worker.done if worker.done else 0.0,
        )


class _Fill:
    def __init__(self, link: ProbeConnection, queue: QueueSpec, writer: PayloadWriter) -> None:
        self._link, self._queue, self._writer = link, queue, writer
        self._sent = self._answered = 0
        self._room = asyncio.Event()

    async def prepare(self) -> None:
        """Enable confirms."""
        await self._link.confirms(self._settle, lambda _: None)
        self._link.prepare(self._queue.name, _BYTES)

    async def add(self, count: int) -> None:
        """Publish `count` messages and wait until all are confirmed.

        Raises:
            BrokerError: the connection ended, or the broker accepts no messages.
        """
        for _ in range(count):
            while self._sent - self._answered >= _IN_FLIGHT:
                await self._wait()
            if not self._link.alive:
                raise self._link.closed.result()
            self._sent += 1
            self._link.publish(self._writer.write(self._sent))
        while self._answered < self._sent:
            await self._wait()

    async def _wait(self) -> None:
        self._room.clear()
        try:
            async with asyncio.timeout(_CONFIRM_TIMEOUT):
                await self._room.wait()
        except TimeoutError:
            if self._link.closed.done():
                raise self._link.closed.result() from None
            why = "the broker blocks publishers" if self._link.blocked else f"no confirm within {_CONFIRM_TIMEOUT:g} s"
            raise Unreachable(f"the queue could not be filled: {why}") from None

    def _settle(self, tag: int, at: float, *, multiple: bool | None, nacked: bool) -> None:  # noqa: ARG002  a link's contract
        self._answered = max(self._answered, tag) if multiple else self._answered + 1
        self._room.set()
