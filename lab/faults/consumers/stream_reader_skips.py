"""stream-reader-skips: a reader of a stream restarts and begins at the newest message each time.

Source: https://www.rabbitmq.com/docs/streams#consuming
"""

from ackscope.findings import Subject
from lab.amqp import connect, publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import Reader

STREAM = "fault.stream-reader-skips"
_RATE, _WORK = 10.0, 0.02
_LIVES, _AWAY, _PROOF = 120, 110, 2
"""Ticks for which a reader lives and is away, and lives until the fault is in effect."""


def inject(fault: Fault) -> None:
    """Publish ten messages a second; read them for 12 s, and be away for 11 s."""
    fault.make_queue(STREAM, {"x-queue-type": "stream", "x-max-age": "1h"})
    channel = publisher(fault, "fault-stream-reader-skips-publisher")
    for tick, _ in enumerate(fault.ticks(1 / _RATE)):
        publish(channel, STREAM)
        lives, age = divmod(tick, _LIVES + _AWAY)
        if age == 0:
            connection = connect(fault.address, "fault-stream-reader-skips")
            reader = Reader(connection.channel(), _WORK)
            reader.channel.basic_qos(prefetch_count=100)
            reader.channel.basic_consume(STREAM, reader.take, arguments={"x-stream-offset": "next"})
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
    name="stream-reader-skips",
    rule="stream-reader-skips",
    summary="a reader of a stream restarts every 23 s, begins at the newest message, and skips what came meanwhile",
    subject=Subject(kind="queue", name=STREAM),
    inject=inject,
    client="fault-stream-reader-skips",
    also=("connection-churn", "consumer-flapping"),
    one_shot=False,
)
