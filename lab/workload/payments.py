"""Payments, one at a time: a slow consumer with prefetch 1 that keeps up and is idle half of the time."""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from lab.workload.client import ConsumeJob, Job, PublishJob
from lab.workload.effort import pick, take_time

EXCHANGE = "shop.payments"
QUEUE = "shop.payments"
_KEY = "payment"


def declare(channel: BlockingChannel) -> None:
    """Declare exchange and queue."""
    channel.exchange_declare(EXCHANGE, "direct", durable=True)
    channel.queue_declare(QUEUE, durable=True, arguments={"x-queue-type": "classic"})
    channel.queue_bind(QUEUE, EXCHANGE, _KEY)


def _body(number: int) -> dict[str, Any]:
    return {"payment": number, "cents": pick(500, 20_000)}


def _handle(_body: bytes) -> bool:
    take_time(0.05, 0.1)
    return True


JOBS: tuple[Job, ...] = (
    PublishJob(
        name="shop-payments-publisher", declare=declare, exchange=EXCHANGE, routing_key=_KEY, rate=6, body=_body
    ),
    ConsumeJob(name="shop-payments-consumer", declare=declare, queue=QUEUE, prefetch=1, handle=_handle),
)
