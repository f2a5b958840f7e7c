"""Streams that work through a script on queues of their own, round after round, and time its steps."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from ackscope.clock import Instant
from ackscope.errors import BrokerError, Unreachable
from ackscope.records import ProbeState
from probes.periodic_stream import PeriodicStream
from probes.probe_stream import StreamContext
from probes.publisher_consumer import PublisherBlocked, PublisherConsumerPair, StepFailed
from probes.queues import QueueSpec
from probes.settings import RoundSettings
from probes.stream_stats import StreamStats
from probes.verify.frames import Closed


class TimedStep(NamedTuple):
    """A step that came to its end.

    Attributes:
        began, seconds: of the monotonic clock.
        wrong: what was not as it should be; None when all was.
    """

    began: float
    seconds: float
    wrong: str | None = None


class ScriptedStream(PeriodicStream, ABC):
    """One stream; a subclass says what a round is."""

    def __init__(
        self, context: StreamContext, stats: StreamStats, settings: RoundSettings, queues: Sequence[QueueSpec]
    ) -> None:
        super().__init__(context, stats, settings.interval, queues)
        self._timeout, self._specs = settings.timeout, queues
        self._pair: PublisherConsumerPair | None = None
        self._epoch = 0

    async def session(self) -> None:
        """Live through one epoch; see `Stream.session`."""
        self._epoch += 1
        server = self._context.server
        pair = await PublisherConsumerPair.open(server, f"ackscope-probe {self.stats.who.probe}", self._timeout)
        try:
            self.stats.connected(pair.product)
            await self.prepare(pair)
            self._pair = pair
            self.stats.running()
            await self.repeat(lambda _: self._round(pair))
        except Closed as error:
            raise Unreachable(f"{server.address.where}: {_why(error)}") from None
        finally:
            self._pair = None
            await pair.close()

    def tick(self, now: Instant) -> None:
        """Digest what came in, and follow what the broker says of publishers."""
        blocked = None if self._pair is None else self._pair.blocked
        if blocked is not None and self.stats.state is ProbeState.RUNNING:
            self.stats.blocked(blocked, now.mono)
        elif blocked is None and self.stats.state is ProbeState.BLOCKED:
            self.stats.unblocked(now.mono)
        super().tick(now)

    @abstractmethod
    async def prepare(self, pair: PublisherConsumerPair) -> None:
        """Before the first round, and when the channel to take with is a new one."""

    @abstractmethod
    async def work(self, pair: PublisherConsumerPair) -> None:
        """One round; the queues are there and empty."""

    async def step(self, name: str, do: Callable[[], Awaitable[TimedStep]]) -> None:
        """Do a step and enter how it went.

        Raises:
            Unreachable: it did not come to its end: the session must start anew.
        """
        began = asyncio.get_running_loop().time()
        try:
            done = await do()
        except (StepFailed, Closed, BrokerError) as error:
            reason = _why(error) if isinstance(error, Closed) else str(error)
            self.stats.steps.failed(name, began, reason)
            raise Unreachable(f"{self._context.server.address.where}: {name}: {reason}") from None
        if done.wrong is None:
            self.stats.steps.ok(name, done.began, done.seconds)
        else:
            self.stats.steps.failed(name, done.began, done.wrong, done.seconds)

    async def _round(self, pair: PublisherConsumerPair) -> None:
        if pair.blocked is not None:
            return
        try:
            await pair.ready(self._specs)
            await self.work(pair)
        except StepFailed as error:
            raise Unreachable(f"{self._context.server.address.where}: {error}") from None
        except PublisherBlocked:
            # It may have left off anywhere: with a consumer, with messages in hand.
            await pair.renew()
            await self.prepare(pair)


def _why(error: Closed) -> str:
    return f"the broker closed the channel ({error})" if error.code else f"the connection was lost ({error})"
