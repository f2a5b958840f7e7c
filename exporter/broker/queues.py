"""`/api/queues`: queues and streams, in full or their totals only."""

from typing import Any

from ackscope.snapshot import Queue
from exporter.broker.fields import (
    Field,
    Gaps,
    Table,
    Version,
    count,
    flag,
    if_set,
    mapping,
    moment,
    name,
    names,
    number,
    objects,
    read,
    shared,
    text,
)
from exporter.broker.stats import read_rates, read_stats

Key = tuple[str, str]
"""Virtual host and name."""

_NOTHING: dict[str, Any] = {}
"""Shared by all queues without arguments, policy, rates: most of them, of 100,000."""


def _limit(value: Any) -> int | None:
    """A delivery limit; "unlimited" is no limit."""
    return None if value == "unlimited" else count(value)


def _collections(value: Any) -> dict[str, int]:
    """Settings and counts of garbage collection; streams have -1 for each, which is none."""
    return {key: count(item) for key, item in mapping(value).items() if item != -1}


_IDENTITY = (
    Field("vhost", "", shared(name), required=True),
    Field("name", "", name, required=True),
)

_MESSAGES = (
    Field("messages", "", count),
    Field("messages_ready", "", count),
    Field("messages_unacked", "messages_unacknowledged", count),
)

_FIELDS = Table(
    *_IDENTITY,
    *_MESSAGES,
    Field("type", "", shared(text)),
    Field("state", "", shared(text)),
    Field("node", "", shared(text)),
    Field("durable", "", flag),
    Field("auto_delete", "", flag),
    Field("exclusive", "", flag),
    Field("arguments", "", mapping),
    Field("policy", "", shared(if_set(name))),
    Field("operator_policy", "", shared(if_set(name))),
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
    # From 3.13 on only an answer about a single queue has these two: withheld, or they would come and go.
    Field("idle_since", "", if_set(moment), until=(3, 13)),
    Field("garbage_collection", "", _collections, until=(3, 13)),
    Field("leader", "", shared(text)),
    Field("members", "", names),
    Field("online", "", names),
    Field("delivery_limit", "", if_set(_limit)),
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
    # Mirrored queues are gone in 4.0.
    Field("mirrors", "slave_nodes", if_set(names), until=(4, 0)),
    Field("synchronised_mirrors", "synchronised_slave_nodes", if_set(names), until=(4, 0)),
    Field("publishers", "", count),
    Field("segments", "", count),
)

_SHORT_SINCE = (3, 13)
"""From then on the list holds little else, and choosing its columns costs the broker half as much again (4.3)."""

_MAPPINGS = ("arguments", "effective_policy", "garbage_collection")

_UNTOLD: dict[str, Any] = dict.fromkeys(("effective_policy", "garbage_collection", "rates"), _NOTHING)
"""Of a queue whose statistics were never read: one object for all of them."""

_WITHOUT_CAPACITY = frozenset({"quorum", "stream"})
"""Types whose capacity is a constant: 1.0 up to 4.2, 0.0 in 4.3 (rabbitmq-server#16649)."""

# With `disable_stats` an unknown member of an object is null (`exclusive`, `online`), and a stream has no messages.
_TOTALS = Table(
    *_IDENTITY,
    *_MESSAGES,
    Field("type", "", if_set(shared(text))),
    Field("state", "", if_set(shared(text))),
    Field("node", "", if_set(shared(text))),
    Field("durable", "", if_set(flag)),
    Field("auto_delete", "", if_set(flag)),
    Field("exclusive", "", if_set(flag)),
    Field("arguments", "", mapping),
    Field("policy", "", if_set(shared(name))),
    Field("leader", "", if_set(shared(text))),
    Field("members", "", if_set(names)),
    Field("online", "", if_set(names)),
)


def columns_of(version: Version | None) -> str:
    """The columns of the full list to ask for; "" where all of them cost the broker less, or the version is unknown.

    Before 3.13 a page of 500 took 78 ms whole and 64 ms like this (3.10.8): two fifths of it are not decoded here.
    """
    if version is None or version >= _SHORT_SINCE:
        return ""
    return ",".join((*(field.path or field.attribute for field in _FIELDS.fields), "message_stats"))


def decode_queues(payload: Any, version: Version | None) -> tuple[tuple[Queue, ...], Gaps]:
    """The queues and their gaps; one without name or virtual host is dropped and counted, a second one dropped.

    Pages are read one after another: a queue may appear on two of them when others come or go in between.
    """
    gaps = Gaps()
    queues: dict[Key, Queue] = {}
    for item in objects(payload, "queues", gaps):
        queue = _queue(item, version, gaps)
        if queue is not None:
            queues[queue.key] = queue
    return tuple(queues.values()), gaps


def decode_queue(item: Any, version: Version | None) -> tuple[Queue | None, Gaps]:
    """One queue in full (`/api/queues/<vhost>/<name>`) and its gaps; None where its name is not told."""
    gaps = Gaps()
    if not isinstance(item, dict):
        gaps["queues"] += 1
        return None, gaps
    return _queue(item, version, gaps), gaps


def decode_totals(payload: Any, version: Version | None) -> tuple[tuple[Queue, ...], Gaps]:
    """All queues with the totals of this list and nothing else, and the gaps.

    Args:
        payload: of `/api/queues?disable_stats=true&enable_queue_totals=true`. It tells no messages of streams.
        version: makes no difference.
    """
    gaps = Gaps()
    queues: dict[Key, Queue] = {}
    for item in objects(payload, "queues", gaps):
        values = read(_TOTALS, item, version, gaps)
        if values["name"] is None or values["vhost"] is None:
            continue
        values["arguments"] = values["arguments"] or _NOTHING
        queue = Queue(**values, **_UNTOLD)
        queues[queue.key] = queue
    return tuple(queues.values()), gaps


def _queue(item: dict[str, Any], version: Version | None, gaps: Gaps) -> Queue | None:
    values = read(_FIELDS, item, version, gaps)
    if values["name"] is None or values["vhost"] is None:
        return None
    for attribute in _MAPPINGS:
        values[attribute] = values[attribute] or _NOTHING
    # An unknown type may be one of them: only where the type is known can capacity mean something.
    if values["type"] is None or values["type"] in _WITHOUT_CAPACITY:
        values["consumer_capacity"] = values["consumer_utilisation"] = None
    return Queue(**values, rates=read_rates(item, gaps) or _NOTHING, stats=read_stats(item, gaps))
