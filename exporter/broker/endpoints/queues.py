"""`/api/queues`: queues and streams, with all statistics or with totals only."""

from typing import Any

from ackscope.snapshot import Queue
from exporter.broker.endpoints.message_stats import read_rates, read_stats
from exporter.broker.fields import (
    Field,
    FieldTable,
    Gaps,
    Version,
    count,
    flag,
    if_set,
    interned,
    mapping,
    moment,
    name,
    names,
    number,
    objects,
    read,
    text,
)

QueueKey = tuple[str, str]
"""Virtual host and name."""

_EMPTY: dict[str, Any] = {}
"""Shared by all queues without arguments, policy or rates, which are most of 100,000."""


def _delivery_limit(value: Any) -> int | None:
    return None if value == "unlimited" else count(value)


def _owner(value: Any) -> str | None:
    """Decode `owner_pid_details`: an object with the name of a connection, or anything else without one."""
    return name(value["name"]) if isinstance(value, dict) and "name" in value else None


def _garbage_collection(value: Any) -> dict[str, int]:
    """Decode settings and counts of garbage collection; streams send -1 for "none"."""
    return {key: count(item) for key, item in mapping(value).items() if item != -1}


_IDENTITY = (
    Field("vhost", "", interned(name), required=True),
    Field("name", "", name, required=True),
)

_MESSAGES = (
    Field("messages", "", count),
    Field("messages_ready", "", count),
    Field("messages_unacked", "messages_unacknowledged", count),
)

_FIELDS = FieldTable(
    *_IDENTITY,
    *_MESSAGES,
    Field("type", "", interned(text)),
    Field("state", "", interned(text)),
    Field("node", "", interned(text)),
    Field("durable", "", flag),
    Field("auto_delete", "", flag),
    Field("exclusive", "", flag),
    Field("arguments", "", mapping),
    Field("policy", "", interned(if_set(name))),
    Field("operator_policy", "", interned(if_set(name))),
    Field("effective_policy", "effective_policy_definition", mapping),
    Field("message_bytes", "", count),
    Field("message_bytes_ready", "", count),
    Field("message_bytes_unacked", "message_bytes_unacknowledged", count),
    Field("consumers", "", count),
    Field("consumer_capacity", "", if_set(number)),
    Field("consumer_utilisation", "", if_set(number)),
    Field("memory", "", count),
    Field("reductions", "", count),
    Field("head_message_timestamp", "", if_set(count)),
    # Since 3.13 only the single-queue endpoint returns these two. They are ignored, or they would come and go.
    Field("idle_since", "", if_set(moment), until=(3, 13)),
    Field("garbage_collection", "", _garbage_collection, until=(3, 13)),
    Field("leader", "", interned(text)),
    Field("members", "", names),
    Field("online", "", names),
    Field("delivery_limit", "", if_set(_delivery_limit)),
    Field("messages_ram", "", count),
    Field("messages_ready_ram", "", count),
    Field("messages_unacked_ram", "messages_unacknowledged_ram", count),
    Field("messages_persistent", "", count),
    Field("messages_paged_out", "", count),
    Field("messages_dlx", "", count),
    Field("message_bytes_ram", "", count),
    Field("message_bytes_persistent", "", count),
    Field("message_bytes_paged_out", "", count),
    Field("message_bytes_dlx", "", count),
    # 4.0 removed mirrored queues.
    Field("mirrors", "slave_nodes", if_set(names), until=(4, 0)),
    Field("synchronised_mirrors", "synchronised_slave_nodes", if_set(names), until=(4, 0)),
    Field("publishers", "", count),
    Field("segments", "", count),
    # Only the single-queue endpoint returns it, for exclusive queues (seen on 3.10.8 and 4.3.6). It is empty while the
    # connection has no statistics.
    Field("owner", "owner_pid_details", _owner),
)

_NO_COLUMNS_SINCE = (3, 13)
"""Since this version the list has few other columns, and selecting columns costs the broker 50 % more (4.3)."""

_MAPPINGS = ("arguments", "effective_policy", "garbage_collection")

_NO_DETAILS: dict[str, Any] = dict.fromkeys(("effective_policy", "garbage_collection", "rates"), _EMPTY)
"""Values of a queue whose statistics were never read."""

_WITHOUT_CAPACITY = frozenset({"quorum", "stream"})
"""Types whose consumer capacity is a constant: 1.0 up to 4.2, 0.0 in 4.3 (rabbitmq-server#16649)."""

# With `disable_stats` an unknown member of an object is null (`exclusive`, `online`), and a stream has no `messages`.
_TOTALS = FieldTable(
    *_IDENTITY,
    *_MESSAGES,
    Field("type", "", if_set(interned(text))),
    Field("state", "", if_set(interned(text))),
    Field("node", "", if_set(interned(text))),
    Field("durable", "", if_set(flag)),
    Field("auto_delete", "", if_set(flag)),
    Field("exclusive", "", if_set(flag)),
    Field("arguments", "", mapping),
    Field("policy", "", if_set(interned(name))),
    Field("leader", "", if_set(interned(text))),
    Field("members", "", if_set(names)),
    Field("online", "", if_set(names)),
)


def columns_for(version: Version | None) -> str:
    """Return the `columns` parameter for the full list; "" if all columns are cheaper, or the version is unknown.

    Before 3.13, two fifths of the list are not decoded here. A page of 500 queues took 78 ms with all columns and
    64 ms without those (3.10.8).
    """
    if version is None or version >= _NO_COLUMNS_SINCE:
        return ""
    return ",".join((*(field.path or field.attribute for field in _FIELDS.fields), "message_stats"))


def decode_queues(payload: object, version: Version | None) -> tuple[tuple[Queue, ...], Gaps]:
    """Queues and gaps; a queue without name or virtual host is dropped and counted, a duplicate is dropped.

    Pages are read one after another: a queue may be on two of them if others were created or deleted in between.
    """
    gaps = Gaps()
    queues: dict[QueueKey, Queue] = {}
    for item in objects(payload, "queues", gaps):
        queue = _queue(item, version, gaps)
        if queue is not None:
            queues[queue.key] = queue
    return tuple(queues.values()), gaps


def decode_queue(item: object, version: Version | None) -> tuple[Queue | None, Gaps]:
    """One queue with all statistics (`/api/queues/<vhost>/<name>`) and gaps; None if its name is missing."""
    gaps = Gaps()
    if not isinstance(item, dict):
        gaps["queues"] += 1
        return None, gaps
    return _queue(item, version, gaps), gaps


def decode_totals(payload: object, version: Version | None) -> tuple[tuple[Queue, ...], Gaps]:
    """Queues with their totals only, and gaps.

    Args:
        payload: answer of `/api/queues?disable_stats=true&enable_queue_totals=true`. It has no message counts of
            streams.
        version: not used.
    """
    gaps = Gaps()
    queues: dict[QueueKey, Queue] = {}
    for item in objects(payload, "queues", gaps):
        values = read(_TOTALS, item, version, gaps)
        if values["name"] is None or values["vhost"] is None:
            continue
        values["arguments"] = values["arguments"] or _EMPTY
        queue = Queue(**values, **_NO_DETAILS)
        queues[queue.key] = queue
    return tuple(queues.values()), gaps


def _queue(item: dict[str, Any], version: Version | None, gaps: Gaps) -> Queue | None:
    values = read(_FIELDS, item, version, gaps)
    if values["name"] is None or values["vhost"] is None:
        return None
    for attribute in _MAPPINGS:
        values[attribute] = values[attribute] or _EMPTY
    # Consumer capacity is only meaningful for a known queue type that computes it.
    if values["type"] is None or values["type"] in _WITHOUT_CAPACITY:
        values["consumer_capacity"] = values["consumer_utilisation"] = None
    return Queue(**values, rates=read_rates(item, gaps) or _EMPTY, stats=read_stats(item, gaps))
