"""Forms of stuck-consumer: consumers that stop at exactly their prefetch, on one channel or many, also of a stream."""

from collections.abc import Callable
from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.consumers.messages import publisher
from lab.faults.fault import Fault, FaultSpec

_RATE = 5.0
_QUEUES = 5
_REFRESH = 5
"""Seconds after which the broker has refreshed the statistics of a channel."""


def _hold(
    name: str,
    *,
    queues: int = 1,
    consumers: int = 1,
    prefetch: int = 10,
    acked: int = 0,
    shared: bool = False,
    arguments: dict[str, object] | None = None,
    consume: dict[str, object] | None = None,
) -> Callable[[Fault], None]:
    """Return an injection: one channel consumes from some queues, acknowledges the first messages, and then none."""

    def inject(fault: Fault) -> None:
        names = [f"fault.{name}{f'.{number}' if number else ''}" for number in range(queues)]
        for queue in names:
            fault.make_queue(queue, arguments)
        channel = publisher(fault, f"fault-{name}-publisher")
        consumer = fault.connect(f"fault-{name}").channel()
        if prefetch:
            consumer.basic_qos(prefetch_count=prefetch, global_qos=shared)
        received: list[int] = []

        def take(inner: BlockingChannel, method: Any, _properties: Any, _body: bytes) -> None:
            received.append(method.delivery_tag)
            if len(received) < acked:
                inner.basic_ack(method.delivery_tag, multiple=True)

        for queue in names:
            # The first has most messages, so that it is the cause of the others.
            publish(channel, queue, (2 if queue != names[0] else 4) * prefetch * consumers)
            for _ in range(consumers):
                consumer.basic_consume(queue, take, arguments=consume)
        full = acked + prefetch * (1 if shared else consumers * queues)
        ticks_full = 0
        for _ in fault.ticks(1 / _RATE):
            for queue in names:
                publish(channel, queue)
            ticks_full += len(received) >= max(1, full - 1)
            if ticks_full == _REFRESH * _RATE:
                fault.announce()

    return inject


def _spec(name: str, summary: str, inject: Callable[[Fault], None], **more: Any) -> FaultSpec:
    subject = Subject(kind="queue", name=f"fault.{name}")
    return FaultSpec(name=name, rule="stuck-consumer", summary=summary, subject=subject, inject=inject, **more)


SPECS = (
    _spec(
        "batch-over-prefetch",
        "two consumers of a quorum queue collect batches that are larger than their prefetch of 20",
        _hold("batch-over-prefetch", consumers=2, prefetch=20, arguments={"x-queue-type": "quorum"}),
    ),
    _spec(
        "shared-prefetch-used-up",
        "a client collects a batch that is larger than the prefetch of 20 that its consumers share",
        _hold("shared-prefetch-used-up", prefetch=20, shared=True),
        brokers=("3.10",),
        also=("global-prefetch",),
    ),
    _spec(
        "multiple-ack-held-back",
        "one delivery that is never settled holds back all acknowledgements after it; there is no prefetch limit",
        _hold("multiple-ack-held-back", prefetch=0, acked=60),
        also=("prefetch-hoarder",),
        one_shot=False,
    ),
    _spec(
        "stream-reader-stuck",
        "the only reader of a stream acknowledges 30 messages and then none, with a prefetch of 15",
        _hold(
            "stream-reader-stuck",
            prefetch=15,
            acked=30,
            arguments={"x-queue-type": "stream"},
            consume={"x-stream-offset": "first"},
        ),
    ),
    _spec(
        "hung-channel",
        "a channel that serves five queues hangs with the full prefetch of each",
        _hold("hung-channel", queues=_QUEUES),
        also=("stuck-consumer",),
    ),
)
