"""Base class of streams that run a script of timed steps on their own queues in each round."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from ackscope.clock import Instant
from ackscope.errors import BrokerError, Unreachable
from ackscope.records import ProbeState
from probes.catalogue.probe import RoundSettings
from probes.periodic_stream import PeriodicStream
from probes.probe_stream import StreamContext
from probes.publisher_consumer import PublisherBlocked, StepFailed
from probes.queues import QueueSpec
from probes.stream_stats import StreamStats
from probes.verify.frames import Closed


class TimedStep(NamedTuple):
    """A completed step.

    Attributes:
        began, seconds: its start (monotonic seconds) and its duration.
        wrong: error text; None if the step succeeded.
    """

    began: float
    seconds: float
    wrong: str | None = None


class ScriptedPair(Protocol):
    """Connections of a script: the same interface for every protocol."""

    product: str

    @property
    def blocked(self) -> str | None:
        """Why the broker blocks publishers; None while it does not."""
        ...

    async def ready(self, queues: Sequence[QueueSpec]) -> None:
        """Make sure that the queues exist, are empty and have no other consumer."""
        ...

    async def renew(self) -> None:
        """End all consumers, which requeues what they hold."""
        ...

    async def close(self) -> None:
        """Close the connections in order."""
        ...


P = TypeVar("P", bound=ScriptedPair)


class ScriptedStream(PeriodicStream, ABC, Generic[P]):
    """A stream whose rounds a subclass implements, on the connections that it opens."""

    def __init__(
        self, context: StreamContext, stats: StreamStats, settings: RoundSettings, queues: Sequence[QueueSpec]
    ) -> None:
        super().__init__(context, stats, settings.interval, queues)
        self._timeout, self._specs = settings.timeout, queues
        self._pair: P | None = None
        self._epoch = 0

    async def session(self) -> None:
        """Run one session; see `ProbeStream.session`."""
        self._epoch += 1
        server = self._context.server
        pair = await self.open_pair(f"ackscope-probe {self.stats.who.probe}")
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
        """Aggregate records, and update the blocked state."""
        blocked = None if self._pair is None else self._pair.blocked
        if blocked is not None and self.stats.state is ProbeState.RUNNING:
            self.stats.blocked(blocked, now.mono)
        elif blocked is None and self.stats.state is ProbeState.BLOCKED:
            self.stats.unblocked(now.mono)
        super().tick(now)

    @abstractmethod
    async def open_pair(self, name: str) -> P:
        """Open the connections of a session; the broker shows `name`.

        Raises:
            BrokerError: a connection failed.
        """

    @abstractmethod
    async def prepare(self, pair: P) -> None:
        """Prepare the channels. Called before the first round, and for each new consuming channel."""

    @abstractmethod
    async def work(self, pair: P) -> None:
        """Run one round. The queues exist and are empty."""

    async def step(self, name: str, do: Callable[[], Awaitable[TimedStep]]) -> None:
        """Run a step and record its result.

        Raises:
            Unreachable: the step failed, so the session must be restarted.
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

    async def _round(self, pair: P) -> None:
        if pair.blocked is not None:
            return
        try:
            await pair.ready(self._specs)
            await self.work(pair)
        except StepFailed as error:
            raise Unreachable(f"{self._context.server.address.where}: {error}") from None
        except PublisherBlocked:
            # The round may have stopped at any step, so a consumer and unacked messages may remain.
            await pair.renew()
            await self.prepare(pair)


def _why(error: Closed) -> str:
    return f"the broker closed the channel ({error})" if error.code else f"the connection was lost ({error})"
