"""Runs streams on one event loop: reconnects with backoff, maps errors to states, emits records every second."""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from importlib import import_module
from random import Random

from ackscope.clock import Clock, Instant
from ackscope.errors import AckscopeError, Unsupported
from ackscope.log import get_logger
from ackscope.records import ProbeState
from probes.catalogue import PROBES
from probes.instrument import PERIOD, LoopLag
from probes.ipc import RecordBatch
from probes.probe_stream import ProbeStream, StreamContext
from probes.settings import ProbesSettings

FIRST_WAIT, LONGEST_WAIT = 0.5, 4.0
"""Seconds between connection attempts, first and longest. They double, and are randomly shortened by up to half."""

UNSUPPORTED_WAIT = 60.0
"""Seconds until a stream tries again that this version of the broker does not support: it may be upgraded."""

_EVERY, _QUIET = 1.0, 3
"""Seconds between two summaries of a stream. A running stream without news emits only every third summary."""
_BUSY, _SELDOM = 20.0, 3
"""Below this rate (messages per second) a stream gets every third tick and half as many summaries, to save CPU."""
_ROWS_AT_ONCE = 256
_log = get_logger(__name__)

Emit = Callable[[RecordBatch], None]


def make_streams(settings: ProbesSettings, context: StreamContext) -> list[ProbeStream]:
    """Create the streams of all enabled probes; for a single node only of probes that measure node by node."""
    wanted = [PROBES[name] for name in dict.fromkeys(settings.enabled)]
    return [
        stream
        for probe in wanted
        if probe.on_nodes or not context.node
        for stream in import_module(probe.module).streams(settings.of(probe), context)
    ]


class Runner:
    """Runs streams until they are stopped.

    Args:
        emit: receives the records of the streams. It is called on the event loop, so it must not block.
        grace: seconds to wait for outstanding messages at the end.
    """

    def __init__(
        self,
        streams: Sequence[ProbeStream],
        *,
        clock: Clock,
        lag: LoopLag,
        random: Random,
        emit: Emit,
        grace: float = 1.0,
    ) -> None:
        self._streams = streams
        self._clock, self._lag, self._random, self._emit, self._grace = clock, lag, random, emit, grace
        now = clock.now().mono
        self._reported_states = [stream.stats.state for stream in streams]
        self._skipped = [0] * len(streams)
        # The summaries are staggered, so that not all are made in the same millisecond.
        self._every = [_EVERY if stream.stats.who.rate >= _BUSY else 2 * _EVERY for stream in streams]
        self._report_at = [now + every * index / len(streams) for index, every in enumerate(self._every)]

    async def run(self, stop: asyncio.Event) -> None:
        """Run every stream until `stop` is set. Then stop all in order and emit the remaining records."""
        tasks = [asyncio.ensure_future(self._keep(stream)) for stream in self._streams]
        ticking = asyncio.ensure_future(self._tick())
        try:
            stopped = asyncio.ensure_future(stop.wait())
            # If the tick task ends, it has failed, and its error is raised below.
            await asyncio.wait({stopped, ticking}, return_when=asyncio.FIRST_COMPLETED)
            stopped.cancel()
            await self._wind_down()
        finally:
            for task in (*tasks, ticking):
                task.cancel()
            ended = await asyncio.gather(ticking, *tasks, return_exceptions=True)
            self._hand_on_rest()
        if isinstance(ended[0], Exception):
            raise ended[0]

    async def _wind_down(self) -> None:
        for stream in self._streams:
            stream.stop_sending()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._grace
        while loop.time() < deadline and not all(stream.idle for stream in self._streams):  # noqa: ASYNC110  ticks make it so
            await asyncio.sleep(PERIOD)

    async def _keep(self, stream: ProbeStream) -> None:
        wait = FIRST_WAIT
        who = stream.stats.who
        while True:
            try:
                await stream.session()
            except Unsupported as error:
                if stream.stats.state is not ProbeState.UNSUPPORTED:
                    _log.info("probe is not supported", cluster=stream.cluster, probe=who.probe, reason=str(error))
                stream.stats.unsupported(str(error))
                await asyncio.sleep(UNSUPPORTED_WAIT * self._random.uniform(0.5, 1.0))
                continue
            except AckscopeError as error:
                reason = str(error)
            except Exception as error:  # noqa: BLE001  the boundary: an error in one stream must not end the others
                _log.exception("probe failed unexpectedly", cluster=stream.cluster, probe=who.probe, stream=who.stream)
                reason = f"internal error of the probe ({type(error).__name__}: {error})"
            else:
                reason = "its session ended"
            if stream.stats.state is not ProbeState.FAILED:
                wait = FIRST_WAIT
                _log.warning(
                    "probe stream failed", cluster=stream.cluster, probe=who.probe, stream=who.stream, error=reason
                )
            stream.stats.failed(reason, self._clock.now().mono)
            await asyncio.sleep(wait * self._random.uniform(0.5, 1.0))
            wait = min(LONGEST_WAIT, 2 * wait)

    async def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        for look in itertools.count():
            await asyncio.sleep(max(0.0, self._lag.due - loop.time()))
            now = self._clock.now()
            self._lag.look(now.mono)
            for index, stream in enumerate(self._streams):
                if stream.stats.who.rate < _BUSY and (look + index) % _SELDOM:
                    continue
                stream.tick(now)
                due = now.mono >= self._report_at[index]
                if due:
                    self._report_at[index] = max(self._report_at[index] + self._every[index], now.mono)
                    due = self._has_news(index, stream)
                # Emit a change of state immediately, because a lost connection is often back within a second.
                if due or stream.stats.state is not self._reported_states[index]:
                    self._reported_states[index] = stream.stats.state
                    self._report(stream, now, with_outcome=True)
                elif stream.stats.ready >= _ROWS_AT_ONCE:
                    self._report(stream, now, with_outcome=False)

    def _has_news(self, index: int, stream: ProbeStream) -> bool:
        self._skipped[index] += 1
        if stream.stats.waiting or stream.stats.state is not ProbeState.RUNNING or self._skipped[index] >= _QUIET:
            self._skipped[index] = 0
            return True
        return False

    def _report(self, stream: ProbeStream, now: Instant, *, with_outcome: bool) -> None:
        drained = stream.stats.take(now)
        outcomes = [stream.stats.outcome(now)] if with_outcome else []
        self._emit(RecordBatch(stream.cluster, drained.messages, drained.bursts, drained.steps, outcomes))

    def _hand_on_rest(self) -> None:
        now = self._clock.now()
        for stream in self._streams:
            stream.stats.aggregate(now, stream.stats.waiting)
            self._report(stream, now, with_outcome=True)
