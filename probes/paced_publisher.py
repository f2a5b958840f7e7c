"""The publisher of one epoch: sends on schedule, records outcomes, and pauses while the broker blocks it."""

import asyncio
import math
from collections.abc import Callable
from random import Random
from typing import Protocol

from ackscope.errors import BrokerError, Unreachable
from ackscope.records import Outcome
from probes.bursts import Burst, BurstJoiner
from probes.catalogue.probe import SendingSettings
from probes.confirm_ledger import ConfirmLedger, Settled
from probes.payload import PayloadWriter, read
from probes.probe_connection import SettleCallback
from probes.queues import QueueSpec
from probes.schedule import Schedule
from probes.stream_stats import StreamStats

MAX_BATCH = 32
"""Maximum number of due messages sent in one go, so that arriving acks are not delayed longer."""

_LOOK = 1.0
_TICK = 0.05
_RENEW_MOST = 300.0


class PublishingConnection(Protocol):
    """What a publisher needs of its connection. `ProbeConnection` has it for AMQP 0-9-1."""

    closed: asyncio.Future[BrokerError]
    product: str

    @property
    def alive(self) -> bool:
        """Whether it is open."""
        ...

    @property
    def blocked(self) -> bool:
        """Whether the broker blocks publishers."""
        ...

    @property
    def credit(self) -> int:
        """How many messages the broker takes now."""
        ...

    def on_blocked(self, blocked: Callable[[str], None], unblocked: Callable[[], None]) -> None:
        """Register callbacks for the start and the end of a block. `blocked` gets the reason."""
        ...

    def on_credit(self, more: Callable[[], None]) -> None:
        """Register a callback for the end of a time without credit."""
        ...

    async def declare(self, queue: QueueSpec) -> None:
        """Declare the queue, or check it."""
        ...

    async def touch(self, queue: QueueSpec) -> None:
        """Prevent the expiry of the queue."""
        ...

    async def confirms(self, settle: SettleCallback, returned: Callable[[bytes], None]) -> None:
        """Begin to get the outcome of each message."""
        ...

    def prepare(
        self, key: str, size: int, *, exchange: str = "", delivery_mode: int = ..., mandatory: bool = ...
    ) -> None:
        """Prepare to publish bodies of one size."""
        ...

    def publish(self, body: bytes) -> float:
        """Publish a body; returns when it was sent, in monotonic seconds."""
        ...

    async def close(self) -> None:
        """Close it in order."""
        ...


class PacedPublisher:
    """Publishes on one channel, from `run` until the connection ends or `finish` is called.

    Rate, size and delivery mode come from the identity of the stream.

    Args:
        queue: the target queue. If None, messages are not mandatory.
        key: the routing key; default: the name of the queue.
        consumed: whether the queue has a consumer, which prevents its expiry.
        sink: called with messages when they have their outcome.
        watch: called with every burst of acks.
    """

    def __init__(
        self,
        link: PublishingConnection,
        queue: QueueSpec | None,
        settings: SendingSettings,
        *,
        writer: PayloadWriter,
        stats: StreamStats,
        random: Random,
        sink: Callable[[list[Settled]], None],
        key: str = "",
        consumed: bool = False,
        watch: Callable[[Burst], None] | None = None,
    ) -> None:
        self._link, self._queue, self._settings = link, queue, settings
        self._key = key or ("" if queue is None else queue.name)
        self._writer, self._stats, self._random, self._sink = writer, stats, random, sink
        self._consumed, self._watch = consumed, watch
        self._loop = asyncio.get_running_loop()
        self._ledger = ConfirmLedger(settings.undecided_after)
        self._bursts = BurstJoiner()
        self._schedule: Schedule | None = None
        self._timer: asyncio.Handle | None = None
        self._stopping = self._returned_once = False
        self._tick_at = 0.0

    async def run(self) -> None:
        """Publish until the connection ends.

        Raises:
            BrokerError: why it ended.
        """
        self._link.on_blocked(self._blocked, self._unblocked)
        self._link.on_credit(self._set_timer)
        await self._link.confirms(self._settle, self._returned)
        who = self._stats.who
        self._link.prepare(
            self._key, who.payload_bytes, delivery_mode=who.delivery_mode, mandatory=self._queue is not None
        )
        self._stats.running()
        self._schedule = Schedule(who.rate, self._loop.time(), self._random)
        self._set_timer()
        renew_at = self._next_renewal()
        while True:
            await asyncio.wait({self._link.closed}, timeout=_LOOK)
            if self._link.closed.done():
                raise self._link.closed.result()
            if self._ledger.late >= self._settings.max_outstanding:
                raise Unreachable(
                    f"{self._ledger.late} messages were not confirmed within {self._settings.undecided_after:g} s; "
                    "the channel is closed and a new one opened"
                )
            if (
                self._queue is not None
                and not self._link.blocked
                and (self._returned_once or self._loop.time() >= renew_at)
            ):
                self._returned_once = False
                await self._link.declare(self._queue)
                if not self._consumed:
                    await self._link.touch(self._queue)
                renew_at = self._next_renewal()

    def stop_sending(self) -> None:
        """Send no more messages. Outstanding messages may still be settled."""
        self._stopping = True
        self._cancel_timer()

    def tick(self, now: float) -> None:
        """Time out messages, and close a burst that has ended. Must be called regularly."""
        if now < self._tick_at:
            return
        self._tick_at = now + _TICK
        expired = self._ledger.expire(now)
        if expired:
            self._sink(expired)
        if self._schedule is not None and not self._stopping:
            too_late = self._schedule.give_up(now - self._settings.undecided_after)
            if too_late:
                self._sink([self._ledger.never_sent(due, now, Outcome.TIMED_OUT) for due in too_late])
        self._end_burst(now)
        self._stats.outstanding = self._ledger.outstanding
        self._set_timer()

    def finish(self, now: float) -> None:
        """End the epoch. Outstanding messages are lost, or undecided if the probe itself was stopped."""
        self._cancel_timer()
        outcome = Outcome.TIMED_OUT if self._stopping else Outcome.LOST
        rest = self._ledger.close(outcome)
        if self._schedule is not None and not self._stopping:
            rest += [self._ledger.never_sent(due, now, outcome) for due in self._schedule.give_up(now)]
        self._sink(rest)
        self._end_burst(math.inf)
        self._stats.outstanding = 0

    @property
    def outstanding(self) -> int:
        """Number of messages without an outcome."""
        return self._ledger.outstanding

    def _next_renewal(self) -> float:
        # Publishing does not count as use of a queue, so without this it would expire during the measurement.
        return math.inf if self._queue is None else self._loop.time() + min(self._queue.expires / 6, _RENEW_MOST)

    def _send_due(self) -> None:
        self._timer = None
        schedule, ledger, link = self._schedule, self._ledger, self._link
        if schedule is None or self._stopping or link.blocked or not link.alive:
            return
        # With neither room nor credit the messages wait, and are sent late with their original time.
        room = min(self._settings.max_outstanding - ledger.outstanding, link.credit)
        for intended in schedule.take(self._loop.time(), min(room, MAX_BATCH)):
            sent = link.publish(self._writer.write(ledger.next_tag))
            ledger.publish(intended, sent)
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None or self._stopping or self._schedule is None or self._link.blocked:
            return
        if self._ledger.outstanding >= self._settings.max_outstanding:
            self._bursts.full()
            return
        if self._link.credit <= 0:
            return
        due = self._schedule.next_at
        if due == math.inf:
            return
        late = due <= self._loop.time()
        self._timer = self._loop.call_soon(self._send_due) if late else self._loop.call_at(due, self._send_due)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_burst(self, now: float) -> None:
        self._report_burst(self._bursts.flush(now))

    def _report_burst(self, burst: Burst | None) -> None:
        if burst is not None:
            self._stats.burst(burst)
            if self._watch is not None:
                self._watch(burst)

    def _settle(self, tag: int, at: float, *, multiple: bool | None, nacked: bool) -> None:
        frame = self._ledger.settle(tag, at, multiple=multiple, nacked=nacked)
        if multiple is not None:
            self._report_burst(self._bursts.frame(at, frame.covered, multiple=multiple, settled=frame.settled))
        if frame.settled:
            self._sink(frame.settled)
        self._set_timer()

    def _returned(self, body: bytes) -> None:
        self._returned_once = True
        mark = read(body)
        if mark is not None:
            self._ledger.returned(mark.seq)

    def _blocked(self, reason: str) -> None:
        now = self._loop.time()
        self._cancel_timer()
        if self._schedule is not None:
            self._schedule.pause(now)
        self._stats.blocked(reason, now)

    def _unblocked(self) -> None:
        now = self._loop.time()
        if self._schedule is not None:
            self._schedule.resume(now)
        self._stats.unblocked(now)
        self._set_timer()
