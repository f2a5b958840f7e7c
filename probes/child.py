"""The probe process: `python -m probes.child`. It reads its targets from stdin and writes records to stdout.

It is a separate process, so that work of the exporter (such as parsing 10,000 queues) does not delay the probes.
It ends at the end of stdin, which means that its parent has ended, or on SIGTERM. The long-lived queues remain until
they expire.
"""

import asyncio
import contextlib
import os
import secrets
import signal
import sys
from collections.abc import Sequence
from random import Random

from ackscope.clock import SystemClock
from ackscope.errors import AckscopeError
from ackscope.log import get_logger, setup_logging
from probes.instrument import CALM_PERIOD, LoopLag, freeze_interpreter, new_loop
from probes.ipc import ProbeTarget, RecordBatch, decode_targets, encode_batch
from probes.pipe_writer import PipeWriter
from probes.placement import place
from probes.probe_stream import StreamContext
from probes.runner import Runner, make_streams

log = get_logger(__name__)

_GRACE = 0.5
_SPAN = 60.0


async def measure(targets: Sequence[ProbeTarget], source: int, sink: int) -> None:
    """Run all probes of all targets until `source` ends or a signal arrives.

    Args:
        targets: the clusters.
        source: file descriptor; the run stops when it reaches its end.
        sink: file descriptor for the records.
    """
    loop, stop, clock = asyncio.get_running_loop(), asyncio.Event(), SystemClock()
    random = Random(secrets.randbits(64))  # noqa: S311  spreads send times and retries, guards nothing
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    _watch(loop, source, stop)
    lag, run_id = LoopLag(loop.time(), span=_SPAN, period=CALM_PERIOD), secrets.token_hex(8)
    streams = []
    for target in targets:
        for node, server in target.servers.items():
            context = StreamContext(
                cluster=target.cluster,
                server=server,
                prefix=target.probes.prefix,
                run_id=run_id,
                lag=lag,
                random=random,
                node=node,
            )
            streams += make_streams(target.probes, context)
    outlet = PipeWriter(sink, broken=lambda: _end(loop, stop))

    def emit(batch: RecordBatch) -> None:
        for line in encode_batch(batch):
            outlet.put(line)

    try:
        await Runner(streams, clock=clock, lag=lag, random=random, emit=emit, grace=_GRACE).run(stop)
    finally:
        outlet.close(timeout=0.3)


def _end(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    loop.call_soon_threadsafe(stop.set)


def _watch(loop: asyncio.AbstractEventLoop, source: int, stop: asyncio.Event) -> None:
    def readable() -> None:
        if not os.read(source, 65536):
            loop.remove_reader(source)
            stop.set()

    loop.add_reader(source, readable)


def main() -> int:
    """Read the targets, then measure until the end of stdin or a signal."""
    setup_logging()
    try:
        targets = decode_targets(sys.stdin.buffer.readline())
        # All targets have the same settings of the process.
        for refusal in place(targets[0].probes) if targets else ():
            log.warning("the probe process is not placed as configured", refused=refusal)
        freeze_interpreter()
        with asyncio.Runner(loop_factory=new_loop) as runner, contextlib.suppress(KeyboardInterrupt):
            runner.run(measure(targets, sys.stdin.fileno(), sys.stdout.fileno()))
    except AckscopeError as error:
        print(f"probes: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
