"""reply-queue-leak: a client declares a queue for the reply to each request, and deletes none.

The exclusive ones are polled and stay until the connection ends. The others stay for ever, and hold replies that came
too late.
"""

import uuid
from collections.abc import Callable
from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec

CLIENT, REQUESTS = "fault-reply-queue-leak", "fault.reply-queue-leak"
PREFIX, LATE = f"{REQUESTS}.answer.", f"{CLIENT}-late"
_RATE, _STOCK, _MOST = 1.0, 40, 2000

Declare = Callable[[BlockingChannel], str]


def inject(fault: Fault) -> None:
    """Declare 40 exclusive queues and one more a second; poll each once."""

    def declare(channel: BlockingChannel) -> str:
        name = channel.queue_declare("", exclusive=True).method.queue
        publish(channel, name)
        channel.basic_get(name, auto_ack=True)
        return str(name)

    _leak(fault, CLIENT, declare, _RATE)


def inject_late(fault: Fault) -> None:
    """Leave 120 queues with a late reply in each, and one more every 4 s; another client serves the requests."""
    fault.make_queue(REQUESTS)
    server = fault.connect(f"{LATE}-server")
    replies, serving = server.channel(), server.channel()

    def serve(channel: BlockingChannel, method: Any, properties: Any, _body: bytes) -> None:
        publish(replies, properties.reply_to)
        channel.basic_ack(method.delivery_tag)

    serving.basic_consume(REQUESTS, serve)

    def declare(channel: BlockingChannel) -> str:
        name = f"{PREFIX}{uuid.uuid4()}"
        channel.queue_declare(name, durable=True, arguments={"x-queue-type": "classic"})
        publish(channel, REQUESTS, reply_to=name)
        return name

    _leak(fault, LATE, declare, _RATE / 4, stock=3 * _STOCK)


def _leak(fault: Fault, client: str, declare: Declare, rate: float, stock: int = _STOCK) -> None:
    channel = fault.connect(client).channel()
    made: list[str] = []
    fault.later(lambda: _delete(fault, made))
    made.extend(declare(channel) for _ in range(stock))
    fault.announce()
    for _ in fault.ticks(1 / rate):
        if len(made) < _MOST:
            made.append(declare(channel))


def _delete(fault: Fault, names: list[str]) -> None:
    with fault.briefly("fault-cleanup") as channel:
        for name in names:
            if not name.startswith("amq."):
                channel.queue_delete(name)


SPEC = FaultSpec(
    name="reply-queue-leak",
    rule="reply-queue-leak",
    summary="a client declares an exclusive queue for each request, polls it once and keeps it",
    subject=Subject(kind="vhost", name=""),
    inject=inject,
    also=("polling-consumer", "queue-leak"),
)
LATE_REPLIES = FaultSpec(
    name="late-replies",
    rule="reply-queue-leak",
    summary="durable reply queues with late replies are left behind",
    subject=Subject(kind="vhost", name=""),
    inject=inject_late,
    also=("queue-leak",),
)
