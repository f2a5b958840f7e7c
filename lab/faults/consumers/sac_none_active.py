"""sac-none-active: the acknowledgement timeout ends both consumers of a single-active queue, and both wait for good.

Seen on 4.3.6 with quorum queues, which have a timeout of their own there. The broker checks it about once a minute.
"""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec
from lab.faults.listed import consumers_of

QUEUE = "fault.sac-none-active"
_TIMEOUT = 10_000
_RATE = 5.0


def inject(fault: Fault) -> None:
    """Let two consumers hold what they get, until the broker has taken it back from both."""
    fault.make_queue(
        QUEUE,
        {"x-queue-type": "quorum", "x-single-active-consumer": True, "x-consumer-timeout": _TIMEOUT},
    )
    channel = publisher(fault, "fault-sac-none-active-publisher")
    names = ("first", "second")
    held: list[int] = []

    def hold(_channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        held.append(method.delivery_tag)

    for number, name in enumerate(names, 1):
        consumer = fault.connect(f"fault-sac-none-active-{name}").channel()
        consumer.basic_qos(prefetch_count=number)
        consumer.basic_consume(QUEUE, hold, consumer_tag=f"fault-sac-none-active-{name}")
    publish(channel, QUEUE, 20)
    announced = False
    for number, _ in enumerate(fault.ticks(1 / _RATE)):
        publish(channel, QUEUE)
        if not announced and number % int(_RATE) == 0 and held and _none_active(fault):
            fault.announce()
            announced = True


def _none_active(fault: Fault) -> bool:
    consumers = consumers_of(fault, QUEUE)
    return len(consumers) > 1 and not any(each["active"] for each in consumers)


SPEC = FaultSpec(
    name="sac-none-active",
    rule="sac-none-active",
    summary="the acknowledgement timeout leaves both consumers of a single-active queue waiting",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    brokers=("4.3",),
    # Until the timeout has taken everything back, the active consumer is stuck.
    also=("consumer-ack-timeout", "sac-stuck"),
)
