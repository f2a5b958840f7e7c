"""`message_stats`: message counters of the overview, queues, channels, exchanges and virtual hosts."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ackscope.counters import MessageStats
from exporter.broker.fields import Field, FieldTable, Gaps, count, mapping, number, read

_FIELDS = FieldTable(*(Field(field.name, "", count) for field in fields(MessageStats)))

_EMPTY = MessageStats()
"""Shared by all objects without counters: most queues of a large broker are idle."""

_RATES = tuple((name, f"{name}_details") for name in ("publish", "deliver", "deliver_no_ack"))
"""Rates that kbudde/rabbitmq_exporter exported, for migration; a rate computed from the counters is more accurate."""


def read_stats(item: Mapping[str, Any], gaps: Gaps) -> MessageStats:
    """Read the counters of one object; all are None before its first event."""
    stats = item.get("message_stats", {})
    # Erlang sends an empty object as [].
    if not stats and isinstance(stats, dict | list):
        return _EMPTY
    if not isinstance(stats, dict):
        gaps["message_stats"] += 1
        return _EMPTY
    return MessageStats(**read(_FIELDS, stats, None, gaps))


def read_rates(item: Mapping[str, Any], gaps: Gaps) -> dict[str, float]:
    """Read the rates that the broker computed, in messages per second, by counter name."""
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
