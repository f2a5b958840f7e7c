"""Clients of the stream protocol: which consumer of `/api/consumers` is which one of the plugin's list."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ackscope.snapshot import Consumer, Part
from ackscope.streams import StreamConsumer

_TAG = "stream.subid-"
"""Begin of the tag that the broker gives a consumer that uses the stream protocol; its number follows."""


def with_streams(parts: Mapping[str, Part[Any]]) -> dict[str, Part[Any]]:
    """Return the parts, with what the plugin tells about consumers of the stream protocol added to these consumers."""
    consumers, streams = parts["consumers"], parts["streams"]
    if not consumers.value or streams.value is None or not streams.value.consumers:
        return dict(parts)
    known: dict[tuple[str | None, str], StreamConsumer] = {
        (each.connection_name, f"{_TAG}{each.subscription}"): each for each in streams.value.consumers
    }
    value = tuple(_joined(each, known.get((each.connection_name, each.tag))) for each in consumers.value)
    return {**parts, "consumers": replace(consumers, value=value)}


def _joined(consumer: Consumer, found: StreamConsumer | None) -> Consumer:
    if (
        found is None
        or consumer.channel_name is not None
        or (found.vhost, found.queue) != (consumer.vhost, consumer.queue)
    ):
        return consumer
    return replace(
        consumer,
        # The broker says 0, which would mean no limit; credit is what limits it.
        prefetch_count=None,
        # There is nothing to acknowledge: a reader keeps its offset.
        ack_required=None,
        subscription=found.subscription,
        credit=found.credit,
        offset_lag=found.offset_lag,
    )
