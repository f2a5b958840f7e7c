"""pub-sync-confirm: a publisher waits for each confirm, on a disk whose syncs take 0.3 s longer.

Source: https://www.rabbitmq.com/docs/publishers#publisher-confirm-strategies
"""

import threading

from pika import BasicProperties
from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import LOST, PERSISTENT, connect
from lab.faults.fault import Fault, FaultSpec
from lab.slow_disk import slow_disk

QUEUE = "fault.pub-sync-confirm"
_SECONDS = 0.3


def inject(fault: Fault) -> None:
    """Publish to a quorum queue, each message after the confirm of the previous one."""
    fault.make_queue(QUEUE, {"x-queue-type": "quorum"})
    consumer = fault.connect("fault-pub-sync-confirm-consumer").channel()
    consumer.basic_qos(prefetch_count=50)
    consumer.basic_consume(QUEUE, lambda channel, method, _properties, _body: channel.basic_ack(method.delivery_tag))
    # The library call blocks, so it has its own thread.
    publisher = connect(fault.address, "fault-pub-sync-confirm").channel()
    publisher.confirm_delivery()
    with slow_disk(fault.lab.pid(0), _SECONDS):
        waiting = threading.Thread(target=_publish, args=(fault, publisher), name="publisher", daemon=True)
        waiting.start()
        fault.announce()
        fault.hold()
    waiting.join(10.0)


def _publish(fault: Fault, channel: BlockingChannel) -> None:
    try:
        while not fault.ending.is_set():
            channel.basic_publish("", QUEUE, b"sync-confirm", BasicProperties(delivery_mode=PERSISTENT))
        channel.connection.close()
    except LOST:
        return


SPEC = FaultSpec(
    name="pub-sync-confirm",
    rule="pub-sync-confirm",
    summary="a publisher waits for each confirm while the disk takes 0.3 s longer for each write",
    subject=Subject(kind="vhost", name="/"),
    inject=inject,
    alone=True,
    also=("slow-disk",),
    one_shot=False,
)
