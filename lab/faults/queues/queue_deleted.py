"""queue-deleted: a queue is deleted with a backlog, by a person, or by the broker when its consumer reconnects.

Source: https://www.rabbitmq.com/docs/queues#temporary-queues
"""

import itertools

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import writer

QUEUE = "fault.queue-deleted"
AUTO_DELETE = "fault.queue-auto-deleted"
MESSAGES = 300
_SETTLED = 16
"""Seconds until the statistics show the backlog in two polls."""
_STAYS, _AWAY = 16, 3
"""Seconds for which the consumer of the auto-delete queue is connected, and away."""
_RATE = 20


def inject(fault: Fault) -> None:
    """Publish a backlog and delete the queue after 16 s."""
    fault.make_queue(QUEUE)
    channel = writer(fault, QUEUE)
    publish(channel, QUEUE, MESSAGES)
    for second, _ in enumerate(fault.ticks(1.0)):
        if second == _SETTLED:
            channel.queue_delete(QUEUE)
            fault.announce()


def reconnect(fault: Fault) -> None:
    """Consume more slowly than is published, from an auto-delete queue, and reconnect every 19 s."""
    publisher = fault.connect("fault-queue-auto-deleted-publisher").channel()
    ticks = fault.ticks(1 / _RATE)
    for round_ in itertools.count():
        consumer = fault.connect(f"fault-queue-auto-deleted-{round_}", served=False)
        channel = consumer.channel()
        channel.queue_declare(AUTO_DELETE, auto_delete=True, durable=True)
        channel.queue_bind(AUTO_DELETE, "amq.fanout")
        channel.basic_qos(prefetch_count=1)
        channel.basic_consume(AUTO_DELETE, lambda *_: None)
        for _ in itertools.islice(ticks, _STAYS * _RATE):
            publish(publisher, AUTO_DELETE)
        consumer.close()
        if round_ == 1:
            fault.announce()
        if sum(1 for _ in itertools.islice(ticks, _AWAY * _RATE)) < _AWAY * _RATE:
            return


SPEC = FaultSpec(
    name="queue-deleted",
    rule="queue-deleted",
    summary="a queue is deleted with 300 messages in it",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    also=("no-consumer", "orphan-queue"),
    one_shot=False,
)
AUTO_DELETED = FaultSpec(
    name="queue-auto-deleted",
    rule="queue-deleted",
    summary="the consumer of an auto-delete queue reconnects, and each time the broker deletes its backlog",
    subject=Subject(kind="queue", name=AUTO_DELETE),
    inject=reconnect,
    also=("stuck-consumer", "slow-consumer", "deprecated-features-used", "pub-unroutable-dropped"),
    one_shot=False,
)
