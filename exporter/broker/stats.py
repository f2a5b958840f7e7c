"""Message counters, which overview, queues, channels, exchanges and virtual hosts carry under `message_stats`."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ackscope.counters import MessageStats
from exporter.broker.fields import Field, Gaps, Table, count, mapping, number, read

_FIELDS = Table(*(Field(field.name, "", count) for field in fields(MessageStats)))

_NONE = MessageStats()
"""Shared by all objects without events: most queues of a large broker are idle."""

_RATES = tuple((name, f"{name}_details") for name in ("publish", "deliver", "deliver_no_ack"))
"""Those that the ended exporter showed; a rate of one's own, made of the counters, is the better one."""


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


def read_rates(item: Mapping[str, Any], gaps: Gaps) -> dict[str, float]:
    """Counter -> a message a second, as the broker reckons it; what is wrong with the counters is not told again."""
    stats = item.get("message_stats")
    rates: dict[str, float] = {}
    if not isinstance(stats, dict):
        return rates
    for name, key in _RATES:
        try:
            if key in stats and "rate" in (details := mapping(stats[key])):
                rates[name] = number(details["rate"])
        except ValueError:
            gaps[key] += 1
    return rates
