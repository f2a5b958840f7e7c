"""Emails: a delayed retry. Refused emails wait 5 s in a queue without a consumer, by design.

shop.emails --reject--> exchange shop.emails.rejected --> shop.emails.retry --TTL--> exchange shop.emails
"""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from lab.workload.client import ConsumeJob, Job, PublishJob
from lab.workload.effort import chance, pick, take_time

EXCHANGE = "shop.emails"
QUEUE = "shop.emails"
RETRY = "shop.emails.retry"
_REJECTED = "shop.emails.rejected"
_KEY = "email"
_RETRY_MS = 5000
_REFUSED = 0.05


def declare(channel: BlockingChannel) -> None:
    """Declare both exchanges and both queues."""
    channel.exchange_declare(EXCHANGE, "direct", durable=True)
    channel.exchange_declare(_REJECTED, "fanout", durable=True)
    channel.queue_declare(
        QUEUE, durable=True, arguments={"x-queue-type": "classic", "x-dead-letter-exchange": _REJECTED}
    )
    channel.queue_bind(QUEUE, EXCHANGE, _KEY)
    # The dead-lettered message keeps its routing key, which brings it back to the first queue.
    channel.queue_declare(
        RETRY,
        durable=True,
        arguments={"x-queue-type": "classic", "x-message-ttl": _RETRY_MS, "x-dead-letter-exchange": EXCHANGE},
    )
    channel.queue_bind(RETRY, _REJECTED)


def _body(number: int) -> dict[str, Any]:
    return {"email": number, "text": "x" * pick(100, 1500)}


def _handle(_body: bytes) -> bool:
    take_time(0.005, 0.02)
    return not chance(_REFUSED)


JOBS: tuple[Job, ...] = (
    PublishJob(name="shop-emails-publisher", declare=declare, exchange=EXCHANGE, routing_key=_KEY, rate=6, body=_body),
    ConsumeJob(name="shop-emails-consumer", declare=declare, queue=QUEUE, prefetch=10, handle=_handle),
)
