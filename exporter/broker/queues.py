"""`/api/queues`: queues and streams."""

from typing import Any

from ackscope.snapshot import Queue
from exporter.broker.fields import (
    Field,
    Gaps,
    Version,
    count,
    flag,
    if_set,
    mapping,
    name,
    names,
    number,
    objects,
    read,
    text,
)
from exporter.broker.stats import read_stats


def _limit(value: Any) -> int | None:
    """A delivery limit; "unlimited" is no limit."""
    return None if value == "unlimited" else count(value)


_FIELDS = (
    Field("vhost", "", name, required=True),
    Field("name", "", name, required=True),
    Field("type", "", text),
    Field("state", "", text),
    Field("node", "", text),
    Field("durable", "", flag),
    Field("auto_delete", "", flag),
    Field("exclusive", "", flag),
    Field("arguments", "", mapping),
    Field("policy", "", if_set(name)),
    Field("effective_policy", "effective_policy_definition", mapping),
    Field("messages", "", count),
    Field("messages_ready", "", count),
    Field("messages_unacked", "messages_unacknowledged", count),
    Field("message_bytes", "", count),
    Field("message_bytes_ready", "", count),
    Field("message_bytes_unacked", "message_bytes_unacknowledged", count),
    Field("consumers", "", count),
    Field("consumer_capacity", "", if_set(number)),
    Field("memory", "", count),
    Field("head_message_timestamp", "", if_set(count)),
    Field("leader", "", text),
    Field("members", "", names),
    Field("online", "", names),
    Field("delivery_limit", "", if_set(_limit)),
)

_WITHOUT_CAPACITY = frozenset({"quorum", "stream"})
"""Types whose capacity is a constant: 1.0 up to 4.2, 0.0 in 4.3 (rabbitmq-server#16649)."""


def decode_queues(payload: Any, version: Version | None) -> tuple[tuple[Queue, ...], Gaps]:
    """The queues and their gaps; one without name or virtual host is dropped and counted, a second one dropped.

    Pages are read one after another: a queue may appear on two of them when others come or go in between.
    """
    gaps = Gaps()
    queues: dict[tuple[str, str], Queue] = {}
    for item in objects(payload, "queues", gaps):
        values = read(_FIELDS, item, version, gaps)
        if values["name"] is None or values["vhost"] is None:
            continue
        values["arguments"] = values["arguments"] or {}
        values["effective_policy"] = values["effective_policy"] or {}
        # An unknown type may be one of them: only where the type is known can capacity mean something.
        if values["type"] is None or values["type"] in _WITHOUT_CAPACITY:
            values["consumer_capacity"] = None
        queue = Queue(**values, stats=read_stats(item, gaps))
        queues[queue.key] = queue
    return tuple(queues.values()), gaps
