"""A reader of a stream restarts and begins at the same place each time: consumer-flapping, and stream-reader-skips.

Source: https://www.rabbitmq.com/docs/streams#consuming
"""

from ackscope.findings import Subject
from lab.amqp import connect, publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import Reader

STREAM, SKIPS = "fault.stream-read-again", "fault.stream-reader-skips"
_STORED, _RATE, _WORK = 4_000, 10.0, 0.02
_LIVES, _AWAY = 100, 30
_SKIPS_LIVES, _SKIPS_AWAY = 120, 110
"""Ticks for which a reader lives and is away."""
_LAST = 5
"""Ticks at the end of a life in which the reader rests and nothing is published.

When it closes, pika rejects what it has not handed out, which 3.10 refuses for a stream.
"""
_PROOF = 2
"""Lives until the fault is in effect."""


def inject(fault: Fault) -> None:
    """Read 50 messages a second for 10 s, of a stream with 4,000, and begin again 3 s later."""
    fault.make_queue(STREAM, {"x-queue-type": "stream", "x-max-age": "1h"})
    with fault.briefly("fault-stream-read-again-setup") as setup:
        publish(setup, STREAM, _STORED)
    _live_again(fault, STREAM, "first", prefetch=20, lives=_LIVES, away=_AWAY)


def skip(fault: Fault) -> None:
    """Publish ten messages a second; read them for 12 s, and be away for 11 s."""
    fault.make_queue(SKIPS, {"x-queue-type": "stream", "x-max-age": "1h"})
    _live_again(fault, SKIPS, "next", prefetch=100, lives=_SKIPS_LIVES, away=_SKIPS_AWAY)


def _live_again(fault: Fault, stream: str, offset: str, *, prefetch: int, lives: int, away: int) -> None:
    """Publish, and read from an offset in turns: for some ticks, and then not for others."""
    name = stream.replace(".", "-")
    channel = publisher(fault, f"{name}-publisher")
    for tick, _ in enumerate(fault.ticks(1 / _RATE)):
        times, age = divmod(tick, lives + away)
        if not lives - _LAST <= age <= lives:
            publish(channel, stream)
        if age == 0:
            connection = connect(fault.address, name)
            reader = Reader(connection.channel(), _WORK)
            reader.channel.basic_qos(prefetch_count=prefetch)
            reader.channel.basic_consume(stream, reader.take, arguments={"x-stream-offset": offset})
        elif age < lives:
            connection.process_data_events(time_limit=0)
            if age < lives - _LAST:
                reader.work()
        elif age == lives:
            connection.close()
            if times + 1 == _PROOF:
                fault.announce()


SPEC = FaultSpec(
    name="stream-read-again",
    rule="consumer-flapping",
    summary="a reader of a stream restarts every 13 s, begins at the first message, and never gets to the newest",
    subject=Subject(kind="queue", name=STREAM),
    inject=inject,
    client="fault-stream-read-again",
    also=("connection-churn", "slow-consumer"),
    one_shot=False,
)

SKIPS_SPEC = FaultSpec(
    name="stream-reader-skips",
    rule="stream-reader-skips",
    summary="a reader of a stream restarts every 23 s, begins at the newest message, and skips what came meanwhile",
    subject=Subject(kind="queue", name=SKIPS),
    inject=skip,
    client="fault-stream-reader-skips",
    also=("connection-churn", "consumer-flapping"),
    one_shot=False,
)
