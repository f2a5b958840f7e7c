import asyncio
import time
from random import Random

from probes.instrument import LoopLag
from probes.periodic_stream import PeriodicStream
from probes.probe_stream import StreamContext
from probes.settings import AmqpSettings


class Over(Exception):
    """Raised to end the test."""


def rounds(interval):
    """The rounds of a stream."""
    context = StreamContext(
        cluster="shop",
        server=AmqpSettings(url="amqp://127.0.0.1:1").server(),
        prefix="p",
        run_id="0" * 16,
        lag=LoopLag(0.0, span=None),
        random=Random(1),
    )
    return PeriodicStream(context, context.new_stats(context.identity("rtt", "rtt", None)), interval)


def live(stream, once):
    """Repeat until the round raises `Over`."""

    async def scenario():
        try:
            await stream.repeat(once)
        except Over:
            return

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_the_first_round_is_at_once_and_each_has_its_slot():
    """Even with an interval of an hour, the first round starts at once."""
    begun = []

    async def once(due):
        begun.append(list(due))
        raise Over

    live(rounds(3600.0), once)

    assert 1 == len(begun)
    assert 1 == len(begun[0])


def test_the_next_round_knows_how_many_could_not_begin():
    """If a round takes several slots, the skipped rounds are counted."""
    begun = []

    async def once(due):
        begun.append(list(due))
        if len(begun) == 3:
            raise Over
        if len(begun) == 2:
            time.sleep(0.25)  # noqa: ASYNC251  a loop that is held up

    live(rounds(0.01), once)

    assert 10 <= len(begun[2])
    assert sorted(begun[2]) == begun[2]


def test_a_stopped_stream_begins_no_round_and_is_idle():
    """The stream waits for its end."""
    stream = rounds(0.01)
    stream.stop_sending()

    async def never(_):
        raise AssertionError

    async def scenario():
        repeating = asyncio.ensure_future(stream.repeat(never))
        await asyncio.sleep(0.05)
        running = not repeating.done()
        repeating.cancel()
        return running

    assert asyncio.run(scenario())
    assert stream.idle
