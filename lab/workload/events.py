"""Events: one publisher and two independent consumers."""

from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from lab.workload.client import ConsumeJob, Job, PublishJob
from lab.workload.effort import pick, take_time

EXCHANGE = "shop.events"
AUDIT = "shop.audit"
SEARCH = "shop.search"


def declare(channel: BlockingChannel) -> None:
    """Declare the exchange and both queues."""
    channel.exchange_declare(EXCHANGE, "fanout", durable=True)
    for queue in (AUDIT, SEARCH):
        channel.queue_declare(queue, durable=True, arguments={"x-queue-type": "classic"})
        channel.queue_bind(queue, EXCHANGE)


def _body(number: int) -> dict[str, Any]:
    return {"event": number, "kind": ("viewed", "bought", "returned")[number % 3], "visitor": pick(1, 10_000)}


def _audit(_body: bytes) -> bool:
    take_time(0.001, 0.003)
    return True


def _search(_body: bytes) -> bool:
    take_time(0.005, 0.015)
    return True


JOBS: tuple[Job, ...] = (
    PublishJob(name="shop-events-publisher", declare=declare, exchange=EXCHANGE, routing_key="", rate=15, body=_body),
    ConsumeJob(name="shop-audit-consumer", declare=declare, queue=AUDIT, prefetch=50, handle=_audit),
    ConsumeJob(name="shop-search-consumer", declare=declare, queue=SEARCH, prefetch=5, handle=_search),
)
