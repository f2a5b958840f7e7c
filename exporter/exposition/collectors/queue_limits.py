"""Queue limits from arguments or the effective policy (`/api/queues`)."""

from collections.abc import Callable

from ackscope.snapshot import Queue
from exporter.exposition.collectors.queue_specs import API, LABELS
from exporter.exposition.specs import MetricReader, Spec, Value, gauge


def _gauge(name: str, text: str, field: str) -> Spec:
    return gauge(name, text, f"{API} {field}", *LABELS)


def _setting(name: str, scale: float = 1) -> Callable[[Queue], Value]:
    def read(queue: Queue) -> Value:
        if not queue.arguments and not queue.effective_policy:
            return None
        value = queue.setting(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            return None
        return value * scale

    return read


READERS: tuple[MetricReader[Queue], ...] = (
    MetricReader(
        _gauge(
            "ackscope_queue_max_length_messages",
            "Length limit in messages, from argument or policy.",
            "arguments.x-max-length, effective_policy_definition.max-length",
        ),
        _setting("max-length"),
    ),
    MetricReader(
        _gauge(
            "ackscope_queue_max_length_bytes",
            "Length limit in bytes of message bodies, from argument or policy.",
            "arguments.x-max-length-bytes, effective_policy_definition.max-length-bytes",
        ),
        _setting("max-length-bytes"),
    ),
    MetricReader(
        _gauge(
            "ackscope_queue_message_ttl_seconds",
            "Message TTL, from argument or policy.",
            "arguments.x-message-ttl, effective_policy_definition.message-ttl",
        ),
        _setting("message-ttl", 0.001),
    ),
    MetricReader(
        _gauge(
            "ackscope_queue_expires_seconds",
            "Time without use after which the queue is deleted, from argument or policy.",
            "arguments.x-expires, effective_policy_definition.expires",
        ),
        _setting("expires", 0.001),
    ),
    MetricReader(
        _gauge(
            "ackscope_queue_delivery_limit",
            "Deliveries after which a message is dropped or dead-lettered; quorum queues.",
            "delivery_limit, arguments.x-delivery-limit, effective_policy_definition.delivery-limit",
        ),
        lambda q: _setting("delivery-limit")(q) if q.delivery_limit is None else q.delivery_limit,
    ),
)
