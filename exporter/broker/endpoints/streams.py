"""`/api/stream/consumers` and `/api/stream/publishers` of the plugin `rabbitmq_stream_management`."""

from typing import Any, TypeVar

from ackscope.streams import StreamClients, StreamConsumer, StreamPublisher
from exporter.broker.fetch import is_error
from exporter.broker.fields import (
    Field,
    FieldTable,
    Gaps,
    Version,
    by_key,
    count,
    each_once,
    flag,
    if_set,
    interned,
    mapping,
    name,
    objects,
    read,
    text,
)

T = TypeVar("T", StreamConsumer, StreamPublisher)

_CLIENT = (
    Field("connection_name", "connection_details.name", interned(name), required=True),
    Field("node", "connection_details.node", interned(text)),
    Field("user", "connection_details.user", interned(name)),
    Field("vhost", "queue.vhost", interned(name), required=True),
    Field("queue", "queue.name", interned(name), required=True),
)
_CONSUMER = FieldTable(
    *_CLIENT,
    Field("subscription", "subscription_id", count, required=True),
    Field("credit", "credits", count),
    Field("consumed", "", count),
    Field("offset", "", count),
    Field("offset_lag", "", count),
    Field("active", "", flag),
    # Names of its filters are properties such as `filter.0`. An empty object is [].
    Field("filtered", "properties", lambda value: any(key.startswith("filter.") for key in mapping(value))),
)
_PUBLISHER = FieldTable(
    *_CLIENT,
    Field("number", "publisher_id", count, required=True),
    Field("reference", "", if_set(interned(name))),
    Field("published", "", count),
    Field("confirmed", "", count),
    Field("errored", "", count),
)


def decode_streams(payload: object, version: Version | None) -> tuple[StreamClients, Gaps]:
    """Clients of streams and gaps; one without a connection, a number or a stream is left out.

    A list that the broker does not have, or refuses, is None.
    """
    gaps = Gaps()
    lists: dict[str, Any] = {}
    for path, answer in by_key(payload, "streams", gaps):
        if is_error(answer):
            gaps[path] += 1
            continue
        lists[path] = answer
    consumers = _clients(lists, "/api/stream/consumers", _CONSUMER, StreamConsumer, version, gaps)
    publishers = _clients(lists, "/api/stream/publishers", _PUBLISHER, StreamPublisher, version, gaps)
    if consumers is not None:
        consumers = each_once(consumers, lambda it: (it.connection_name, it.subscription))
    if publishers is not None:
        publishers = each_once(publishers, lambda it: (it.connection_name, it.number))
    return StreamClients(consumers=consumers, publishers=publishers), gaps


def _clients(
    lists: dict[str, Any], path: str, table: FieldTable, kind: type[T], version: Version | None, gaps: Gaps
) -> tuple[T, ...] | None:
    if path not in lists:
        return None
    found = []
    for item in objects(lists[path], path, gaps):
        values = read(table, item, version, gaps)
        if "filtered" in values:
            values["filtered"] = bool(values["filtered"])
        if all(values[field.attribute] is not None for field in table.fields if field.required):
            found.append(kind(**values))
    return tuple(found)
