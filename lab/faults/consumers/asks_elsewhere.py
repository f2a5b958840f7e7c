"""no-consumer: the consumer asks for a queue of the same name in another virtual host, or for its former name."""

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.decoys.traffic import consume
from lab.faults.clients.again import PROOF, refused
from lab.faults.clients.limited import make_vhost
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE, RENAMED, FORMER = "fault.consumer-elsewhere", "fault.queue-renamed.2", "fault.queue-renamed.1"
_VHOST = "fault-consumer-elsewhere"
_RATE, _SEEN, _NOT_FOUND = 5.0, 60, 404


def _elsewhere(fault: Fault) -> None:
    """Publish to a queue, and consume from its namesake in a virtual host of its own."""
    make_vhost(fault, _VHOST)
    consumer = fault.connect("fault-consumer-elsewhere", virtual_host=_VHOST)
    consumer.channel().queue_declare(QUEUE, durable=True)
    consume(consumer, QUEUE)
    fault.make_queue(QUEUE)
    channel = publisher(fault, "fault-consumer-elsewhere-publisher")
    for sent, _ in enumerate(fault.ticks(1 / _RATE)):
        publish(channel, QUEUE)
        if sent == PROOF:
            fault.announce()


def _renamed(fault: Fault) -> None:
    """Consume for 12 s, replace the queue by one with another number, and ask for the former one every second."""
    fault.make_queue(FORMER)
    channel = publisher(fault, "fault-queue-renamed-publisher")
    with fault.briefly("fault-queue-renamed") as worker:
        consume(worker.connection, FORMER)
        for sent, _ in enumerate(fault.ticks(1 / _RATE)):
            publish(channel, FORMER)
            worker.connection.process_data_events(time_limit=0)
            if sent == _SEEN:
                break
    channel.queue_delete(FORMER)
    fault.make_queue(RENAMED)

    def ask(asking: BlockingChannel) -> None:
        publish(channel, RENAMED, round(_RATE))
        asking.basic_consume(FORMER, lambda *_: None)

    refused(fault, "fault-queue-renamed", _NOT_FOUND, ask, every=1.0)


SPECS = (
    FaultSpec(
        name="consumer-elsewhere",
        rule="no-consumer",
        summary="a queue grows, because its consumer consumes from a queue of the same name in another virtual host",
        subject=Subject(kind="queue", name=QUEUE),
        inject=_elsewhere,
        client="fault-consumer-elsewhere",
        also=("orphan-queue",),
    ),
    FaultSpec(
        name="queue-renamed",
        rule="no-consumer",
        summary="a queue got another name, and its consumer still asks for the former one every second (404)",
        subject=Subject(kind="queue", name=RENAMED),
        inject=_renamed,
        client="fault-queue-renamed",
        apart=True,
        also=("channel-churn", "orphan-queue"),
        # One look does not see that the former queue was there.
        one_shot=False,
    ),
)
