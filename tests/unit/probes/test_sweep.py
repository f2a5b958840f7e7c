import asyncio

import pytest

from ackscope.address import parse_amqp
from probes.queues import is_one_shot, long_lived, one_shot
from probes.settings import AmqpServer
from probes.sweep import sweep

RUN = "0123456789abcdef"


@pytest.mark.parametrize("queue", ["orders", "ackscope.probe.confirm.quorum", "ackscope.probe.once.feedfacefeedface.x"])
def test_only_queues_of_the_run_itself_are_ever_deleted(queue):
    """A user's queue, a long-lived one and one of another run are refused before any connection is made."""
    nowhere = AmqpServer(parse_amqp("amqp://127.0.0.1:1"))

    with pytest.raises(ValueError, match="is not a queue of run"):
        asyncio.run(sweep(nowhere, [queue], prefix="ackscope.probe", run_id=RUN))


def test_what_cannot_be_deleted_is_reported():
    """The broker is unreachable: the queue expires by itself, and the user is informed."""
    queue = one_shot("ackscope.probe", RUN, "confirm", "quorum", "quorum")

    (reported,) = asyncio.run(
        sweep(AmqpServer(parse_amqp("amqp://127.0.0.1:1")), [queue.name], prefix="ackscope.probe", run_id=RUN)
    )

    assert "connection refused" in reported
    assert "expires within 60 s" in reported


def test_every_queue_is_bounded_and_marked_as_ours():
    """Length, TTL and expiry are set; the name starts with the prefix and a dot."""
    for queue in (
        long_lived("my.prefix.confirm.classic", "classic"),
        one_shot("my.prefix", RUN, "confirm", "classic", "classic"),
    ):
        assert queue.name.startswith("my.prefix.")
        assert {"x-queue-type", "x-max-length", "x-message-ttl", "x-expires"} == set(queue.arguments)


def test_one_shot_and_long_lived_queues_are_distinguished():
    """A sweep never takes the queue of a continuous probe."""
    assert is_one_shot(one_shot("p", RUN, "confirm", "classic", "classic").name, "p", RUN)
    assert not is_one_shot(long_lived("p.confirm.classic", "classic").name, "p", RUN)
