"""Two connections of a scripted stream, without a broker."""

import asyncio
from types import SimpleNamespace

import pytest

from probes.publisher_consumer import PublisherBlocked, PublisherConsumerPair, StepFailed
from probes.verify.frames import Confirm


class Sender:
    """A channel in confirm mode to which answers are given by hand."""

    def __init__(self):
        self.published, self.log = 0, []
        self.closed = asyncio.get_running_loop().create_future()

    def publish(self, _queue, _body):
        """Count it."""
        self.published += 1

    def frames(self, kind):
        """What the broker answered."""
        return [frame for frame in self.log if isinstance(frame, kind)]

    async def until(self, done, *, within):
        """Look after a while."""
        await asyncio.sleep(min(within, 0.001))
        return done()


class Taker:
    """A channel that knows when its queue was looked at."""

    def __init__(self):
        self.asked = 0

    async def declare(self, _name, **_):
        """The queue is empty."""
        self.asked += 1
        return SimpleNamespace(consumers=0, messages=0)


def paired(patience):
    """A pair, and the connection that publishes."""
    publishing = SimpleNamespace(product="RabbitMQ 4.3.6", blocked=None)
    pair = PublisherConsumerPair(None, "probe", patience, (publishing, SimpleNamespace()))
    pair.sender, pair.taker = Sender(), Taker()
    return pair, publishing


QUEUES = [SimpleNamespace(name="q", arguments={})]


def test_a_round_begins_when_what_a_block_held_up_is_settled():
    """The broker reads it when it blocks no more, and puts it into the queue."""

    async def scenario():
        pair, publishing = paired(5.0)
        publish = asyncio.create_task(pair.publish("q", [b"1"]))
        await asyncio.sleep(0.005)
        publishing.blocked = "low on memory"
        with pytest.raises(PublisherBlocked):
            await publish
        publishing.blocked = None
        ready = asyncio.create_task(pair.ready(QUEUES))
        await asyncio.sleep(0.02)
        early = pair.taker.asked
        pair.sender.log.append(Confirm(tag=1, multiple=False, nacked=False, at=0.0))
        await ready
        return early, pair.taker.asked

    assert (0, 1) == asyncio.run(scenario())


def test_a_pair_that_published_nothing_is_ready_at_once():
    """Nothing is waited for."""

    async def scenario():
        pair, _ = paired(5.0)
        await pair.ready(QUEUES)
        return pair.taker.asked

    assert 1 == asyncio.run(scenario())


def test_what_is_never_confirmed_ends_the_session():
    """After the patience of a step."""

    async def scenario():
        pair, _ = paired(0.02)
        with pytest.raises(StepFailed, match="not confirmed within"):
            await pair.publish("q", [b"1"])
        await pair.ready(QUEUES)

    with pytest.raises(StepFailed, match="messages published before the block were not confirmed within"):
        asyncio.run(scenario())
