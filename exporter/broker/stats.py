"""Message counters, which overview, queues and channels all carry under `message_stats`."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ackscope.counters import MessageStats
from exporter.broker.fields import Field, Gaps, count, read

_FIELDS = tuple(Field(field.name, "", count) for field in fields(MessageStats))

_NONE = MessageStats()
"""Shared by all objects without events: most queues of a large broker are idle."""


def read_stats(item: Mapping[str, Any], gaps: Gaps) -> MessageStats:
    """The counters of one object; none at all before its first event."""
    stats = item.get("message_stats", {})
    # `[]` is an empty object in Erlang's spelling.
    if not stats and isinstance(stats, dict | list):
        return _NONE
    if not isinstance(stats, dict):
        gaps["message_stats"] += 1
        return _NONE
    return MessageStats(**read(_FIELDS, stats, None, gaps))
