"""Compares three confirm strategies: wait for each message, wait for each batch, or never wait.

Unlike the probes these are closed loops: each sends as fast as its strategy allows, to measure throughput. This puts
load on the broker, so a run is limited in messages and time, and only starts on demand.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from ackscope.errors import BrokerError
from ackscope.records import Outcome, Quantiles
from probes.confirm import LARGE, NAME, PATHS
from probes.confirm_ledger import ConfirmLedger
from probes.paced_publisher import MAX_BATCH
from probes.payload import PayloadWriter, read
from probes.probe_connection import TIMEOUT, ProbeConnection
from probes.probe_stream import StreamContext
from probes.queues import QueueSpec, nowhere
from probes.recent_values import RecentValues

StrategyName = Literal["individual", "batch", "async"]

MOST_MESSAGES = 10_000
"""Maximum number of messages of one strategy."""

WINDOW = 1000
"""Maximum number of unconfirmed messages of the asynchronous strategy."""

_MOST_BYTES = 50_000_000
_BLOCKED = "the broker blocks publishers"


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyResult:
    """The result of one strategy on one stream.

    Attributes:
        batch: messages per batch; 0 for other strategies.
        outcomes: number of messages by Outcome.
        seconds: from the first publish to the last confirm.
        confirm: latency from sent to settled.
        reason: why the run ended early; None if it did not.
    """

    stream: str
    strategy: str
    batch: int
    outcomes: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    confirm: Quantiles = field(default_factory=Quantiles)
    reason: str | None = None

    @property
    def messages(self) -> int:
        """Number of published messages."""
        return sum(self.outcomes.values())

    @property
    def throughput(self) -> float | None:
        """Acked messages per second; None without acks."""
        acked = self.outcomes.get(Outcome.ACKED, 0)
        return acked / self.seconds if acked and self.seconds else None

    @property
    def clean(self) -> bool:
        """Whether the run completed and every message was acked."""
        return self.reason is None and 0 < self.messages == self.outcomes.get(Outcome.ACKED)


class _Publisher:
    """Publishes until `high` messages are outstanding, waits until at most `low` are, and repeats."""

    def __init__(self, link: ProbeConnection, writer: PayloadWriter, high: int, low: int) -> None:
        self._link, self._writer, self._high, self._low = link, writer, high, low
        self._loop = asyncio.get_running_loop()
        self._ledger = ConfirmLedger(TIMEOUT)
        self._news = asyncio.Event()
        self.latencies = RecentValues(span=None)
        self.outcomes: Counter[str] = Counter()
        self.published = 0
        self.last = 0.0

    async def run(self, until: float, most: int) -> str | None:
        """Publish until a loop time or a message count is reached. Returns the reason if it ended early, else None."""
        self._link.on_blocked(lambda _: None, lambda: None)
        self._link.closed.add_done_callback(lambda _: self._news.set())
        try:
            await self._link.confirms(self._settle, self._returned)
            reason = None
            while reason is None and self._loop.time() < until and self.published < most:
                reason = _BLOCKED if self._link.blocked else await self._round(most)
            return reason or await self._until(0)
        except BrokerError as error:
            return str(error)
        finally:
            rest = Outcome.TIMED_OUT if self._link.alive else Outcome.LOST
            self.outcomes[rest] += self._ledger.outstanding

    async def _round(self, most: int) -> str | None:
        # Refill the window in steps, so that arriving acks are read between the steps.
        step = MAX_BATCH if self._low else self._high
        room = min(step, self._high - self._ledger.outstanding, most - self.published)
        for _ in range(room):
            now = self._loop.time()
            self._ledger.publish(now, self._link.publish(self._writer.write(self._ledger.next_tag)))
        self.published += room
        await asyncio.sleep(0)
        return await self._until(self._low)

    async def _until(self, low: int) -> str | None:
        """Wait until at most `low` messages are outstanding. Returns the reason if that failed, else None."""
        while self._ledger.outstanding > low:
            self._news.clear()
            try:
                async with asyncio.timeout(TIMEOUT):
                    await self._news.wait()
            except TimeoutError:
                return _BLOCKED if self._link.blocked else f"no confirm for {TIMEOUT:g} s"
            if self._link.closed.done():
                raise self._link.closed.result()
        return None

    def _settle(self, tag: int, at: float, *, multiple: bool | None, nacked: bool) -> None:
        for settled in self._ledger.settle(tag, at, multiple=multiple, nacked=nacked).settled:
            self.outcomes[settled.outcome] += 1
            self.latencies.record(at - settled.sent, at)
        self.last = at
        self._news.set()

    def _returned(self, body: bytes) -> None:
        mark = read(body)
        if mark is not None:
            self._ledger.returned(mark.seq)


def queue_of(context: StreamContext, stream: str, strategy: str) -> QueueSpec | None:
    """Return the queue of one strategy on one stream. Each has its own, so that all start with an empty queue."""
    path = PATHS[stream]
    if path.queue_type == "none":
        return None
    spec = context.queue(NAME, f"{stream}-{strategy}", path.queue_type)
    if spec.is_stream:
        return spec
    return QueueSpec(
        spec.name, spec.queue_type, spec.expires, {"x-max-length": MOST_MESSAGES, "x-max-length-bytes": _MOST_BYTES}
    )


async def compare(
    context: StreamContext,
    streams: Sequence[str],
    strategies: Sequence[StrategyName],
    *,
    seconds: float,
    payload_bytes: int,
    batch: int,
) -> list[StrategyResult]:
    """Run every strategy on every stream in turn, each for `seconds` or `MOST_MESSAGES`, whichever ends first.

    The caller deletes the queues, whose names `queue_of` returns.
    """
    return [
        await _run(context, stream, strategy, seconds, payload_bytes, batch)
        for stream in streams
        for strategy in strategies
    ]


async def _run(
    context: StreamContext, stream: str, strategy: StrategyName, seconds: float, payload_bytes: int, batch: int
) -> StrategyResult:
    path = PATHS[stream]
    size = max(LARGE, payload_bytes) if path.large else payload_bytes
    high, low = {"individual": (1, 0), "batch": (batch, 0), "async": (WINDOW, WINDOW - 1)}[strategy]
    group = 0 if strategy == "async" else high
    queue = queue_of(context, stream, strategy)
    loop = asyncio.get_running_loop()
    try:
        link = await ProbeConnection.open(context.server, f"ackscope-probe {NAME}")
    except BrokerError as error:
        return StrategyResult(stream=stream, strategy=strategy, batch=group, reason=str(error))
    try:
        if queue is not None:
            await link.declare(queue)
        link.prepare(
            nowhere(context.prefix) if queue is None else queue.name,
            size,
            delivery_mode=path.delivery_mode,
            mandatory=queue is not None,
        )
        publisher = _Publisher(link, PayloadWriter(context.run_id, 1, size), high, low)
        began = loop.time()
        reason = await publisher.run(began + seconds, MOST_MESSAGES)
    except BrokerError as error:
        return StrategyResult(stream=stream, strategy=strategy, batch=group, reason=str(error))
    finally:
        await link.close()
    return StrategyResult(
        stream=stream,
        strategy=strategy,
        batch=group,
        outcomes={outcome.value: publisher.outcomes[outcome] for outcome in Outcome},
        seconds=max(0.0, publisher.last - began),
        confirm=publisher.latencies.summary(publisher.last),
        reason=reason,
    )


def ratio(compared: Sequence[StrategyResult]) -> str | None:
    """Format throughputs relative to the slowest, such as "individual : batch : async = 1 : 4.2 : 9.8"."""
    speeds = [item.throughput for item in compared]
    known = [speed for speed in speeds if speed is not None]
    if len(speeds) < 2 or len(known) < len(speeds):
        return None
    least = min(known)
    names = " : ".join(item.strategy for item in compared)
    return f"{names} = {' : '.join(f'{speed / least:.3g}' for speed in known)}"
