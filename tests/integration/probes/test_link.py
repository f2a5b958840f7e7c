"""The link to real brokers: what only they can prove."""

import asyncio
import secrets

import pytest

from ackscope.errors import Refused
from probes.probe_connection import ProbeConnection
from probes.queues import QueueSpec
from probes.settings import AmqpSettings

pytestmark = pytest.mark.integration


def server(lab):
    """The first node."""
    return AmqpSettings(url=lab.nodes[0].amqp).server()


async def clear(lab, queue):
    """Delete a queue of the test."""
    link = await ProbeConnection.open(server(lab), "ackscope-probe test")
    await link.delete(queue.name)
    await link.close()


@pytest.mark.slow
def test_a_queue_that_is_touched_does_not_expire(lab, run):
    """The queue of a confirm probe has no consumer, and must outlive its own expiry while the probe runs."""
    kinds = ("classic", "quorum", "stream")
    queues = [QueueSpec(f"ackscope.probe.test-{secrets.token_hex(4)}", kind, 3.0) for kind in kinds]

    async def scenario():
        link = await ProbeConnection.open(server(lab), "ackscope-probe test")
        for queue in queues:
            await link.declare(queue)
        touched = 0
        for _ in range(20):
            for queue in queues:
                # Refused where the queue is gone. It is empty: this must also come back with nothing to get.
                await link.touch(queue)
                touched += 1
            await asyncio.sleep(0.5)
        for queue in queues:
            await link.delete(queue.name)
        await link.close()
        return touched

    assert run(scenario()) == 60


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_second_consumer_is_refused_in_words(lab, run, kind):
    """Two ackscope on one queue would each miss what the other one got."""
    queue = QueueSpec(f"ackscope.probe.test-{secrets.token_hex(4)}", kind, 60.0)

    async def scenario():
        links = [await ProbeConnection.open(server(lab), "ackscope-probe test") for _ in range(2)]
        await links[0].declare(queue)
        await links[0].consume(queue.name, 10, lambda *_, **__: None)
        try:
            await links[1].consume(queue.name, 10, lambda *_, **__: None)
        finally:
            for link in links:
                await link.close()
            await clear(lab, queue)

    with pytest.raises(Refused, match="another client consumes from this queue"):
        run(scenario())


def test_the_broker_tells_what_it_is(lab, run):
    """Product and version, for the report; and the connection has the name it was given."""

    async def scenario():
        link = await ProbeConnection.open(server(lab), "ackscope-probe test")
        named = await asyncio.to_thread(lab.ctl, 0, "list_connections", "client_properties", "--silent")
        await link.close()
        return link.product, named

    product, named = run(scenario())

    assert f"RabbitMQ {lab.broker}" == product
    assert "ackscope-probe test" in named
