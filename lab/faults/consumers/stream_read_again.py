"""consumer-flapping: a reader of a stream restarts and begins at the first message each time.

Source: https://www.rabbitmq.com/docs/streams#consuming
"""

from ackscope.findings import Subject
from lab.amqp import connect, publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import Reader

STREAM = "fault.stream-read-again"
_STORED, _RATE, _WORK = 4_000, 10.0, 0.02
_LIVES, _PAUSES, _PROOF = 100, 30, 2
"""Ticks for which a reader lives and is away, and lives until the fault is in effect."""


def inject(fault: Fault) -> None:
    """Read 50 messages a second for 10 s, of a stream with 4,000, and begin again 3 s later."""
    fault.make_queue(STREAM, {"x-queue-type": "stream", "x-max-age": "1h"})
    with fault.briefly("fault-stream-read-again-setup") as setup:
        publish(setup, STREAM, _STORED)
    channel = publisher(fault, "fault-stream-read-again-publisher")
    for tick, _ in enumerate(fault.ticks(1 / _RATE)):
        publish(channel, STREAM)
        lives, age = divmod(tick, _LIVES + _PAUSES)
        if age == 0:
            connection = connect(fault.address, "fault-stream-read-again")
            reader = Reader(connection.channel(), _WORK)
            reader.channel.basic_qos(prefetch_count=20)
            reader.channel.basic_consume(STREAM, reader.take, arguments={"x-stream-offset": "first"})
        elif age < _LIVES:
            connection.process_data_events(time_limit=0)
            # When it closes, pika rejects what it has not handed out, which 3.10 refuses for a stream.
            if age < _LIVES - 5:
                reader.work()
        elif age == _LIVES:
            connection.close()
            if lives + 1 == _PROOF:
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
