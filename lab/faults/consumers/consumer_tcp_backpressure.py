"""consumer-tcp-backpressure: a consumer does not read its socket while the broker sends it 100 kB messages.

The broker closes such a connection when its socket accepts no data for a while (`tcp_listen_options.send_timeout`,
15 s by default; observed on 4.3). The client then reconnects, like an application that is restarted and hangs again.
Source: https://www.rabbitmq.com/docs/connections#flow-control
"""

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec
from lab.faults.listed import connections_named

QUEUE = "fault.consumer-tcp-backpressure"
_NAME = "fault-consumer-tcp-backpressure"
_BODY = b"x" * 100_000
_MESSAGES = 300
_LISTED_WITHIN = 12
"""Maximum number of seconds until the broker lists a new connection."""


def inject(fault: Fault) -> None:
    """Consume with automatic acknowledgement without reading the socket; publish 30 MB."""
    fault.make_queue(QUEUE)
    channel = publisher(fault, "fault-consumer-tcp-backpressure-publisher")
    _freeze(fault, channel)
    frozen_at, announced = 0, False
    for tick, _ in enumerate(fault.ticks(1.0)):
        waits = _pending(fault)
        if waits is None and tick - frozen_at > _LISTED_WITHIN:
            _freeze(fault, channel)
            frozen_at = tick
        if waits and not announced:
            fault.announce()
            announced = True


def _freeze(fault: Fault, publishing: BlockingChannel) -> None:
    # Without heartbeats, because the broker would close the connection of a client that sends none.
    frozen = fault.connect(_NAME, served=False, heartbeat=0).channel()
    frozen.basic_consume(QUEUE, lambda *_: None, auto_ack=True, consumer_tag=_NAME)
    publish(publishing, QUEUE, _MESSAGES, _BODY)


def _pending(fault: Fault) -> int | None:
    mine = connections_named(fault, _NAME)
    return sum(each.get("send_pend") or 0 for each in mine) if mine else None


SPEC = FaultSpec(
    name="consumer-tcp-backpressure",
    rule="consumer-tcp-backpressure",
    summary="a consumer stops reading its socket while 30 MB of messages are due to it",
    subject=Subject(kind="connection", name=""),
    inject=inject,
    also=("auto-ack-consumer", "heartbeat-extreme"),
)
