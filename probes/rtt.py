"""The rtt probe: measures the round trip of a request that changes nothing, a passive declare of its own queue.

The request passes the connection, the channel and the queue, so its round trip is the minimum latency of every other
operation.
"""

import asyncio
from collections.abc import Sequence

from ackscope.errors import BrokerError, Unreachable
from ackscope.failures import FailurePhrase
from probes.catalogue.rtt import PROBE, RttSettings
from probes.periodic_stream import PeriodicStream
from probes.probe_connection import ProbeConnection
from probes.probe_stream import ProbeStream, StreamContext
from probes.queues import EXPIRES

NAME = PROBE.name
STEP = "declare"

_USE_EVERY = EXPIRES / 6
_LATE = 0.01


class RttStream(PeriodicStream):
    """Stream that sends one request per interval."""

    def __init__(self, context: StreamContext, settings: RttSettings) -> None:
        self._queue = context.queue(NAME, NAME, "classic")
        super().__init__(
            context, context.new_stats(context.identity(NAME, NAME, self._queue)), settings.interval, [self._queue]
        )
        self._settings = settings
        self._use_at = 0.0

    async def session(self) -> None:
        """Run one session; see `ProbeStream.session`."""
        link = await ProbeConnection.open(self._context.server, f"ackscope-probe {NAME}")
        try:
            self.stats.connected(link.product)
            await link.declare(self._queue)
            self.stats.running()
            await self.repeat(lambda due: self._ask(link, due))
        finally:
            await link.close()

    async def _ask(self, link: ProbeConnection, due: Sequence[float]) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() >= self._use_at:
            await link.touch(self._queue)
            self._use_at = loop.time() + _USE_EVERY
        began = loop.time()
        try:
            async with asyncio.timeout(self._settings.timeout):
                seconds = await link.round_trip(self._queue.name)
        except (BrokerError, TimeoutError) as error:
            reason = str(error) or f"{FailurePhrase.NO_ANSWER} {self._settings.timeout:g} s"
            self.stats.steps.failed(STEP, began, reason)
            raise Unreachable(reason) from None
        for at in due:
            # A request that was due while the previous one was outstanding waited for that response too.
            begin = at if began - at > _LATE else began
            self.stats.steps.ok(STEP, begin, began + seconds - begin)


def streams(settings: RttSettings, context: StreamContext) -> list[ProbeStream]:
    """Create the only stream."""
    return [RttStream(context, settings)]
