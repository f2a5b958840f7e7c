"""no-consumer: the consumer asks for a queue of the same name in another virtual host, or for its former name."""

from collections.abc import Callable

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.decoys.traffic import consume
from lab.faults.clients.again import PROOF, refused
from lab.faults.clients.limited import make_vhost
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

RENAMED, FORMER = "fault.queue-renamed.2", "fault.queue-renamed.1"
_LIMIT = 70
_RATE, _SEEN, _NOT_FOUND = 5.0, 60, 404


def _elsewhere(
    name: str, *, rate: float = _RATE, consumers: int = 1, limit: int | None = None
) -> Callable[[Fault], None]:
    """Return an injection: publish to a queue, and consume from its namesake in a virtual host of its own.

    With a limit, the fault is in effect once the queue is full and drops messages.
    """
    queue, vhost = f"fault.{name}", f"fault-{name}"
    arguments: dict[str, object] = {} if limit is None else {"x-max-length": limit}

    def inject(fault: Fault) -> None:
        make_vhost(fault, vhost)
        for _ in range(consumers):
            consumer = fault.connect(f"fault-{name}", virtual_host=vhost)
            consumer.channel().queue_declare(queue, durable=True, arguments=arguments)
            consume(consumer, queue)
        fault.make_queue(queue, arguments)
        channel = publisher(fault, f"fault-{name}-publisher")
        for sent, _ in enumerate(fault.ticks(1 / rate)):
            publish(channel, queue)
            if sent == (limit or 0) + PROOF:
                fault.announce()

    return inject


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
        subject=Subject(kind="queue", name="fault.consumer-elsewhere"),
        inject=_elsewhere("consumer-elsewhere"),
        client="fault-consumer-elsewhere",
        also=("orphan-queue",),
    ),
    FaultSpec(
        name="wrong-vhost-drops",
        rule="no-consumer",
        summary="a full queue drops its oldest messages, because its three consumers are in another virtual host",
        subject=Subject(kind="queue", name="fault.wrong-vhost-drops"),
        inject=_elsewhere("wrong-vhost-drops", rate=13.0, consumers=3, limit=_LIMIT),
        client="fault-wrong-vhost-drops",
        also=("orphan-queue", "maxlen-drop-head"),
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
