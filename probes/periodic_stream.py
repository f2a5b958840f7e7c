"""Base class of streams that repeat the same steps and time each."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from ackscope.clock import Instant
from probes.probe_stream import StreamContext, aggregate_share
from probes.queues import QueueSpec
from probes.schedule import Schedule
from probes.stream_stats import StreamStats

_MISSED_MOST = 1000


class PeriodicStream:
    """A stream of timed rounds.

    Args:
        interval: seconds between rounds. Each round begins at a random time in a slot of that length.
        queues: names of its queues.
    """

    def __init__(
        self, context: StreamContext, stats: StreamStats, interval: float, queues: Sequence[QueueSpec] = ()
    ) -> None:
        self._context, self._interval = context, interval
        self._busy = self._stopping = False
        self.cluster, self.stats = context.cluster, stats
        self.queues = tuple(queue.name for queue in queues)

    @property
    def idle(self) -> bool:
        """Whether no round is running."""
        return not self._busy

    def tick(self, now: Instant) -> None:
        """Aggregate pending records."""
        self.stats.aggregate(now, aggregate_share(self.stats.waiting))

    def stop_sending(self) -> None:
        """Start no more rounds."""
        self._stopping = True

    async def repeat(self, once: Callable[[Sequence[float]], Awaitable[None]]) -> None:
        """Run a round in every slot until an exception is raised; the first one immediately.

        Args:
            once: runs one round. It gets the scheduled start times (monotonic seconds) of this round, and of rounds
                that were skipped because the previous one took too long.
        """
        loop = asyncio.get_running_loop()
        due: Sequence[float] = [loop.time()]
        schedule = Schedule(1.0 / self._interval, loop.time() + self._interval / 2, self._context.random)
        while True:
            if not self._stopping:
                self._busy = True
                try:
                    await once(due)
                finally:
                    self._busy = False
            while not (due := schedule.take(loop.time(), _MISSED_MOST)):  # noqa: ASYNC110  time itself is awaited
                await asyncio.sleep(max(0.0, schedule.next_at - loop.time()))
