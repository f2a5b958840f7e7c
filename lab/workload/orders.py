"""Orders, which must not be lost: a quorum queue, publisher confirms, and a dead-letter queue for rejects."""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from lab.workload.client import ConsumeJob, Job, PublishJob
from lab.workload.effort import pick, take_time

EXCHANGE = "shop.orders"
QUEUE = "shop.orders"
DEAD = "shop.orders.dead"
_KEY = "order"


def declare(channel: BlockingChannel) -> None:
    """Declare exchange, queue and dead-letter queue."""
    channel.exchange_declare(EXCHANGE, "direct", durable=True)
    channel.exchange_declare(DEAD, "fanout", durable=True)
    channel.queue_declare(DEAD, durable=True, arguments={"x-queue-type": "quorum"})
    channel.queue_bind(DEAD, DEAD)
    channel.queue_declare(QUEUE, durable=True, arguments={"x-queue-type": "quorum", "x-dead-letter-exchange": DEAD})
    channel.queue_bind(QUEUE, EXCHANGE, _KEY)


def _body(number: int) -> dict[str, Any]:
    return {"order": number, "items": pick(1, 9), "cents": pick(500, 20_000), "note": "x" * pick(50, 900)}


def _handle(_body: bytes) -> bool:
    take_time(0.002, 0.008)
    return True


JOBS: tuple[Job, ...] = (
    PublishJob(name="shop-orders-publisher", declare=declare, exchange=EXCHANGE, routing_key=_KEY, rate=15, body=_body),
    *(
        ConsumeJob(name=f"shop-orders-consumer-{number}", declare=declare, queue=QUEUE, prefetch=20, handle=_handle)
        for number in (1, 2)
    ),
)
