"""consumer-ack-timeout: the broker stops a consumer that holds messages for longer than 10 s.

The timeout is 30 min by default and checked once a minute. Both are shortened on the running node, which needs a lab.
Brokers before 4.0 do not report their timeout, so the rule cannot know a shorter one. From 4.3 on only quorum queues
have this timeout, so the fault uses one.
Source: https://www.rabbitmq.com/docs/consumers#acknowledgement-timeout
"""

import re
from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import LOST, publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.consumer-ack-timeout"
PREFETCH = 10
_TIMEOUT, _TICK = 10_000, 5_000
_NAMES = ("consumer_timeout", "channel_tick_interval")
_GET = "[element(2, application:get_env(rabbit, K)) || K <- [consumer_timeout, channel_tick_interval]]"


def inject(fault: Fault) -> None:
    """Hold ten messages; when the broker requeues them, consume again and hold them again."""
    # One call to set and one to restore: the tool takes seconds to start.
    answer = fault.lab.ctl(0, "eval", f"V = {_GET}, {_set(_TIMEOUT, _TICK)}, V.")
    timeout, tick = (int(number) for number in re.findall(r"\d+", answer)[:2])
    fault.later(lambda: fault.lab.ctl(0, "eval", f"{_set(timeout, tick)}."))
    fault.make_queue(QUEUE, {"x-queue-type": "quorum"})
    channel = publisher(fault, "fault-consumer-ack-timeout-publisher")
    publish(channel, QUEUE, 2 * PREFETCH)
    connection = fault.connect("fault-consumer-ack-timeout")
    held: list[int] = []

    def take(_channel: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
        held.append(method.delivery_tag)

    consumer: BlockingChannel | None = None
    announced = False
    for _ in fault.ticks(1.0):
        publish(channel, QUEUE)
        if consumer is None or not consumer.is_open or not consumer.consumer_tags:
            if consumer is not None and not announced:
                fault.announce()
                announced = True
            _leave(consumer)
            consumer = connection.channel()
            consumer.basic_qos(prefetch_count=PREFETCH)
            consumer.basic_consume(QUEUE, take, consumer_tag="fault-consumer-ack-timeout")


def _set(timeout: int, tick: int) -> str:
    values = zip(_NAMES, (timeout, tick), strict=True)
    return ", ".join(f"application:set_env(rabbit, {name}, {value})" for name, value in values)


def _leave(channel: BlockingChannel | None) -> None:
    if channel is not None and channel.is_open:
        try:
            channel.close()
        except LOST:
            return


SPEC = FaultSpec(
    name="consumer-ack-timeout",
    rule="consumer-ack-timeout",
    summary="a consumer repeatedly holds 10 messages for longer than the ack timeout, which is 10 s here",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    brokers=("4.0", "4.3"),
    alone=True,
    also=("stuck-consumer",),
    one_shot=False,
)
