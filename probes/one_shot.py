"""A one-shot run of a probe: measures for some seconds, prints the report, and deletes the queues."""

import argparse
import asyncio
import os
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from random import Random

from ackscope.cli import print_json
from ackscope.clock import SystemClock
from probes.amqp10 import connection as amqp10
from probes.catalogue import PROBES, handshake
from probes.catalogue.probe import UNDECIDED
from probes.instrument import LoopLag, run_without_gc
from probes.ipc import RecordBatch
from probes.probe_connection import ProbeConnection
from probes.probe_stream import ProbeStream, StreamContext
from probes.report import StreamReport, document, text
from probes.runner import Runner, make_streams
from probes.settings import AmqpServer, ProbesSettings
from probes.streaming import codec
from probes.sweep import sweep

_LIBRARIES: Mapping[str, Callable[[], object]] = {
    "amqp091": lambda: None,
    "amqp10": amqp10.library,
    "stream": codec.library,
}
"""By protocol: what raises `MissingPart` if the library of a probe is not installed."""


def run(args: argparse.Namespace, settings: ProbesSettings, server: AmqpServer) -> int:
    """Run the probe, print its report, and delete its queues."""
    reports, left = run_without_gc(_measure(args, settings, server))
    for sentence in left:
        print(f"ackscope probe: {sentence}", file=sys.stderr)
    address = server.address.where
    product = next((report.outcome.broker for report in reports if report.outcome.broker), "")
    if args.json:
        print_json(
            {
                "probe": args.name,
                "broker": product,
                "address": address,
                "seconds": args.duration,
                **document(reports),
            }
        )
    else:
        print(text(address, product or "no broker", args.name, reports))
    return exit_code(reports)


def exit_code(reports: Sequence[StreamReport]) -> int:
    """Return 3 if nothing was measured, 0 if everything succeeded, else 1."""
    if not any(report.measured for report in reports):
        return 3
    return 0 if all(report.clean for report in reports) else 1


def once_context(server: AmqpServer, prefix: str) -> StreamContext:
    """Create the context of a one-shot run."""
    return StreamContext(
        cluster=server.address.where,
        server=server,
        prefix=prefix,
        run_id=secrets.token_hex(8),
        lag=LoopLag(asyncio.get_running_loop().time(), span=None),
        random=Random(secrets.randbits(64)),  # noqa: S311  spreads send times, guards nothing
        once=True,
    )


async def _measure(
    args: argparse.Namespace, settings: ProbesSettings, server: AmqpServer
) -> tuple[list[StreamReport], list[str]]:
    """Run the streams and delete their queues. Returns a report per stream, and a sentence per remaining queue."""
    loop, stop, clock = asyncio.get_running_loop(), asyncio.Event(), SystemClock()
    _LIBRARIES[PROBES[args.name].protocol]()
    if args.name != handshake.PROBE.name:
        # Fail early if the broker cannot be used. A handshake does not, because the failure is what it measures.
        await (await ProbeConnection.open(server, f"ackscope-probe {args.name}")).close()
    context = once_context(server, settings.prefix)
    streams = make_streams(settings, context)
    progress = _Progress(streams, args.duration)
    runner = Runner(
        streams, clock=clock, lag=context.lag, random=context.random, emit=progress.show, grace=UNDECIDED + 1.0
    )
    loop.call_later(args.duration, stop.set)
    try:
        await runner.run(stop)
    finally:
        progress.clear()
        queues = [name for stream in streams for name in stream.queues]
        left = await sweep(server, queues, prefix=context.prefix, run_id=context.run_id)
    now = clock.now()
    return [StreamReport(stream.stats, stream.stats.outcome(now)) for stream in streams], left


class _Progress:
    def __init__(self, streams: Sequence[ProbeStream], duration: float) -> None:
        self._streams, self._duration = streams, duration
        self._loop = asyncio.get_running_loop()
        self._start = self._loop.time()
        self._on = os.isatty(sys.stderr.fileno())

    def show(self, batch: RecordBatch) -> None:
        """Print the progress line, once a stream has reported its state."""
        if self._on and batch.outcomes:
            states = [stream.stats.state for stream in self._streams]
            counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
            gone = min(self._duration, self._loop.time() - self._start)
            print(f"\r{gone:4.0f} of {self._duration:g} s: {counts}\033[K", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Erase the progress line."""
        if self._on:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
