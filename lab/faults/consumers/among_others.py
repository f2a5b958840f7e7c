"""One client next to a healthy consumer of the same queue polls, rejects, returns messages, or ends with them."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection
from pika.exceptions import ChannelClosedByBroker

from ackscope.findings import Subject
from lab.amqp import connect, publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import reader

RECONNECTS, POLLS, REJECTS, RETURNS = (
    f"fault.{name}"
    for name in ("reconnects-after-bad-ack", "polls-among-others", "rejects-among-others", "returns-among-others")
)
_RATE, _WORK, _TICK = 30.0, 0.05, 0.1
_BACKLOG, _PREFETCH, _CYCLES = 60, 60, 3
_BURST, _EVERY, _POLLS = 25, 20, 3
"""Messages of a burst, ticks between two bursts, and messages that are polled before the fault is in effect."""
_SLOWER, _PROOF = 12.0, 20


def _healthy(fault: Fault, queue: str, rate: float) -> Iterator[int]:
    """Publish at a constant rate, and let a consumer acknowledge up to 20 messages a second; yield the ticks."""
    channel, worker = publisher(fault, f"{_client(queue)}-publisher"), reader(fault, queue, every=_WORK, prefetch=10)
    for tick, _ in enumerate(fault.ticks(_TICK)):
        publish(channel, queue, int(rate * _TICK * (tick + 1)) - int(rate * _TICK * tick))
        worker.work()
        yield tick


def _client(queue: str) -> str:
    return queue.replace("fault.", "fault-")


def _reconnects(fault: Fault) -> None:
    """Acknowledge a quarter of what was sent, and one of these again (406); reconnect when the channel is closed."""
    fault.make_queue(RECONNECTS)
    with fault.briefly(f"{_client(RECONNECTS)}-setup") as setup:
        publish(setup, RECONNECTS, _BACKLOG)
    connection: BlockingConnection | None = None
    cycles = 0
    for tick in _healthy(fault, RECONNECTS, _RATE):
        if connection is None:
            connection = connect(fault.address, _client(RECONNECTS))
            channel, tags = connection.channel(), list[int]()
            channel.basic_qos(prefetch_count=_PREFETCH)
            channel.basic_consume(RECONNECTS, lambda _channel, method, *_, to=tags: to.append(method.delivery_tag))
        elif tick % 10 == 0:
            with suppress(ChannelClosedByBroker):
                channel.basic_ack(max(1, len(tags) // 4), multiple=True)
                channel.basic_ack(1)
                connection.process_data_events(time_limit=1.0)
            connection.close()
            connection, cycles = None, cycles + 1
            if cycles == _CYCLES:
                fault.announce()
        else:
            connection.process_data_events(time_limit=0)


def _polls(fault: Fault) -> None:
    """Take the next message with basic.get and automatic acknowledgement after each burst."""
    fault.make_queue(POLLS)
    bursts, poller, polled = publisher(fault, f"{_client(POLLS)}-bursts"), fault.connect(_client(POLLS)).channel(), 0
    for tick in _healthy(fault, POLLS, 0.0):
        if tick % _EVERY == 0:
            publish(bursts, POLLS, _BURST)
            method, _properties, _body = poller.basic_get(POLLS, auto_ack=True)
            polled += method is not None
            if polled == _POLLS:
                fault.announce()


def _settles(
    queue: str, settle: Callable[[BlockingChannel, int], object], **arguments: object
) -> Callable[[Fault], None]:
    """Return an injection: a second consumer settles all that it is sent in one way."""

    def inject(fault: Fault) -> None:
        if arguments:
            fault.make_queue(f"{queue}.failed")
        fault.make_queue(queue, arguments)
        settled: list[int] = []

        def take(inner: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
            settled.append(method.delivery_tag)
            settle(inner, method.delivery_tag)

        channel, announced = fault.connect(_client(queue)).channel(), False
        channel.basic_qos(prefetch_count=10)
        channel.basic_consume(queue, take)
        for _ in _healthy(fault, queue, _SLOWER):
            if not announced and len(settled) >= _PROOF:
                fault.announce()
                announced = True

    return inject


SPECS = (
    FaultSpec(
        name="reconnects-after-bad-ack",
        rule="consumer-flapping",
        summary="a client acknowledges a message twice each second and reconnects, with most messages unacknowledged",
        subject=Subject(kind="queue", name=RECONNECTS),
        inject=_reconnects,
        apart=True,
        also=("connection-churn",),
        one_shot=False,
    ),
    FaultSpec(
        name="polls-among-others",
        rule="competing-applications",
        summary="a client polls a message every 2 s with automatic acknowledgement from a queue that a consumer reads",
        subject=Subject(kind="queue", name=POLLS),
        inject=_polls,
        client="fault-polls-among-others",
    ),
    FaultSpec(
        name="rejects-among-others",
        rule="dlq-filling",
        summary="one of two consumers rejects all that it is sent, the other one acknowledges; the rejects are kept",
        subject=Subject(kind="queue", name=f"{REJECTS}.failed"),
        inject=_settles(
            REJECTS,
            lambda channel, tag: channel.basic_reject(tag, requeue=False),
            **{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{REJECTS}.failed"},
        ),
        client="fault-rejects-among-others",
        also=("orphan-queue",),
    ),
    FaultSpec(
        name="returns-among-others",
        rule="requeue-loop",
        summary="one of two consumers requeues all that it is sent, and the other one acknowledges it",
        subject=Subject(kind="queue", name=RETURNS),
        inject=_settles(RETURNS, lambda channel, tag: channel.basic_nack(tag, requeue=True)),
        client="fault-returns-among-others",
        one_shot=False,
    ),
)
