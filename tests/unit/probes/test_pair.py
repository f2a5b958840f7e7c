"""The two connections of a scripted stream, without a broker."""

import asyncio
from types import SimpleNamespace

import pytest

from probes.publisher_consumer import PublisherBlocked, PublisherConsumerPair, StepFailed
from probes.verify.frames import Confirm


class Sender:
    """A channel in confirm mode whose answers come from the test."""

    def __init__(self):
        self.published, self.log = 0, []
        self.closed = asyncio.get_running_loop().create_future()

    def publish(self, _queue, _body):
        """Count the message."""
        self.published += 1

    def frames(self, kind):
        """Return the logged frames of this kind."""
        return [frame for frame in self.log if isinstance(frame, kind)]

    async def until(self, done, *, within):
        """Wait a short time."""
        await asyncio.sleep(min(within, 0.001))
        return done()


class Taker:
    """A channel that records when its queue was checked."""

    def __init__(self):
        self.asked = 0

    async def declare(self, _name, **_):
        """Return an empty queue."""
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
    """The broker reads the held messages when the block ends, and puts them into the queue."""

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
    """There is nothing to wait for."""

    async def scenario():
        pair, _ = paired(5.0)
        await pair.ready(QUEUES)
        return pair.taker.asked

    assert 1 == asyncio.run(scenario())


def test_what_is_never_confirmed_ends_the_session():
    """The session ends after the timeout of a step."""

    async def scenario():
        pair, _ = paired(0.02)
        with pytest.raises(StepFailed, match="not confirmed within"):
            await pair.publish("q", [b"1"])
        await pair.ready(QUEUES)

    with pytest.raises(StepFailed, match="messages published before the block were not confirmed within"):
        asyncio.run(scenario())
