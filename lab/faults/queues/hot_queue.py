"""hot-queue: three publishers send as fast as they can, without confirms, to one quorum queue with a consumer.

The broker throttles their channels (flow control), because of the queue.
"""

from typing import Any

from pika import BasicProperties
from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import PERSISTENT
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.hot-queue"
_PUBLISHERS, _BATCH, _ACK_EVERY, _PROOF = 3, 200, 100, 20_000
_BODY = b"x" * 100


def inject(fault: Fault) -> None:
    """Publish in batches on each channel in turn; the consumer acks a hundred messages at a time."""
    fault.make_queue(QUEUE, {"x-queue-type": "quorum"})
    channels = [fault.connect(f"fault-hot-queue-publisher-{n + 1}").channel() for n in range(_PUBLISHERS)]
    consumer = fault.connect("fault-hot-queue-consumer").channel()

    def take(channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        if method.delivery_tag % _ACK_EVERY == 0:
            channel.basic_ack(method.delivery_tag, multiple=True)

    consumer.basic_qos(prefetch_count=1000)
    consumer.basic_consume(QUEUE, take, consumer_tag=f"{QUEUE}.consumer")
    properties = BasicProperties(delivery_mode=PERSISTENT)
    sent, announced = 0, False
    for _ in fault.ticks(0.01):
        for channel in channels:
            for _ in range(_BATCH):
                channel.basic_publish("", QUEUE, _BODY, properties)
            sent += _BATCH
            # `ticks` never waits here, so it does not serve the connection.
            consumer.connection.process_data_events(time_limit=0)
        if not announced and sent >= _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="hot-queue",
    rule="hot-queue",
    summary="three publishers send thousands of messages/s to one quorum queue, which throttles them",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    alone=True,
    also=("pub-credit-flow", "pub-no-confirms", "queue-overload", "slow-consumer", "quorum-queue-without-dlx"),
    one_shot=False,
)
