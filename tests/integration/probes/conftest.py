"""Streams of a probe run in the test's own process, beside a real broker."""

import asyncio
import secrets
import time
from contextlib import asynccontextmanager
from random import Random

import pytest

from ackscope.clock import SystemClock
from probes.instrument import LoopLag, new_loop
from probes.probe_connection import ProbeConnection
from probes.probe_stream import StreamContext
from probes.runner import Runner, make_streams
from probes.settings import AmqpSettings, ProbesSettings
from tests.unit.exporter.web.certificates import make

DEADLINE = 60.0


class Measuring:
    """A probe that runs; what it has reported so far."""

    def __init__(self, prefix, run_id):
        self.prefix, self.run_id = prefix, run_id
        self.batches = []

    @property
    def messages(self):
        """All message records."""
        return [record for batch in self.batches for record in batch.messages]

    @property
    def bursts(self):
        """All ack bursts."""
        return [burst for batch in self.batches for burst in batch.bursts]

    def outcome(self, stream):
        """The last outcome of a stream; None before its first."""
        reported = [outcome for batch in self.batches for outcome in batch.outcomes if outcome.stream == stream]
        return reported[-1] if reported else None

    async def until(self, condition, what):
        """Wait for a real condition."""
        deadline = time.monotonic() + DEADLINE
        while not condition():
            assert time.monotonic() < deadline, (
                f"not within {DEADLINE:g} s: {what}; {[batch.outcomes for batch in self.batches[-4:]]}"
            )
            await asyncio.sleep(0.05)

    async def until_acked(self, stream, count):
        """Wait until that many messages of a stream were acked, and it runs."""

        def acked():
            outcome = self.outcome(stream)
            return outcome is not None and outcome.state == "running" and outcome.outcomes["acked"] >= count

        await self.until(acked, f"{count} acked on {stream}")


@asynccontextmanager
async def measuring(url, probe, prefix=None, *, amqp=None, sweep=True, **settings):
    """Run a continuous probe with a prefix of its own; its queues are deleted at the end.

    `amqp`: more settings of the connection; `sweep` is False where the broker cannot be used to do so.
    """
    prefix, run_id = prefix or f"ackscope.probe.test-{secrets.token_hex(4)}", secrets.token_hex(8)
    all_settings = ProbesSettings.model_validate({"enabled": [probe], "prefix": prefix, probe: settings})
    server = AmqpSettings(url=url, **(amqp or {})).server()
    lag, random = LoopLag(time.monotonic(), span=60.0), Random(7)
    context = StreamContext(cluster="shop", server=server, prefix=prefix, run_id=run_id, lag=lag, random=random)
    streams = make_streams(all_settings, context)
    seen, stop = Measuring(prefix, run_id), asyncio.Event()
    runner = Runner(streams, clock=SystemClock(), lag=lag, random=random, emit=seen.batches.append)
    running = asyncio.ensure_future(runner.run(stop))
    try:
        yield seen
    finally:
        stop.set()
        await running
        if sweep:
            link = await ProbeConnection.open(server, "ackscope-probe test")
            for queue in [name for stream in streams for name in stream.queues]:
                await link.delete(queue)
            await link.close()


@pytest.fixture
def run():
    """Run a coroutine on the kind of loop that the probes run on."""

    def on_probe_loop(coroutine):
        with asyncio.Runner(loop_factory=new_loop) as runner:
            return runner.run(coroutine)

    return on_probe_loop


@pytest.fixture
def measure():
    """What starts a probe; used with `async with`."""
    return measuring


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for 127.0.0.1 that signs itself: (certificate file, key file)."""
    return make(tmp_path_factory.mktemp("tls"), "ackscope-test")
