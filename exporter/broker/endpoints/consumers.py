"""`/api/consumers`."""

from typing import Any

from ackscope.snapshot import Consumer
from exporter.broker.fields import (
    Field,
    FieldTable,
    Gaps,
    Version,
    count,
    flag,
    if_set,
    mapping,
    name,
    objects,
    read,
    text,
    whole,
)


def _priority(arguments: Any) -> int | None:
    value = mapping(arguments).get("x-priority")
    return None if value is None else whole(value)


def _is_filtered(arguments: Any) -> bool:
    return "x-stream-filter" in mapping(arguments)


def _stream_offset(arguments: Any) -> str | int | None:
    value = mapping(arguments).get("x-stream-offset")
    return None if value is None else name(value) if isinstance(value, str) else whole(value)


_FIELDS = FieldTable(
    Field("tag", "consumer_tag", name, required=True),
    Field("vhost", "queue.vhost", name, required=True),
    Field("queue", "queue.name", name, required=True),
    # Empty for clients of MQTT (from 3.12 on) and of the stream protocol, which have no channels.
    Field("channel_name", "channel_details.name", if_set(name)),
    Field("connection_name", "channel_details.connection_name", name),
    Field("user", "channel_details.user", name),
    Field("node", "channel_details.node", text),
    Field("peer_host", "channel_details.peer_host", text),
    Field("peer_port", "channel_details.peer_port", count),
    Field("prefetch_count", "", count),
    Field("ack_required", "", flag),
    Field("exclusive", "", flag),
    Field("active", "", flag),
    Field("activity_status", "", text),
    Field("consumer_timeout_ms", "consumer_timeout", if_set(count)),
    Field("priority", "arguments", _priority),
    Field("filtered", "arguments", _is_filtered),
    Field("stream_offset", "arguments", _stream_offset),
)

_IDENTITY = ("tag", "vhost", "queue")


def decode_consumers(payload: object, version: Version | None) -> tuple[tuple[Consumer, ...], Gaps]:
    """Consumers and gaps; a consumer without tag or queue is dropped and counted."""
    gaps = Gaps()
    consumers = []
    for item in objects(payload, "consumers", gaps):
        values = read(_FIELDS, item, version, gaps)
        if all(values[attribute] is not None for attribute in _IDENTITY):
            consumers.append(Consumer(**values))
    return tuple(consumers), gaps
