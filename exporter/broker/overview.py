"""`/api/overview`: the cluster as a whole."""

from typing import Any

from ackscope.snapshot import Overview
from exporter.broker.fields import Field, Gaps, Version, count, flag, mapping, name, read, text
from exporter.broker.stats import read_stats

_FIELDS = (
    Field("cluster_name", "", name),
    Field("rabbitmq_version", "", text),
    Field("erlang_version", "", text),
    Field("statistics", "disable_stats", lambda value: not flag(value)),
    Field("rates_mode", "", text),
    Field("connections", "object_totals.connections", count),
    Field("channels", "object_totals.channels", count),
    Field("exchanges", "object_totals.exchanges", count),
    Field("queues", "object_totals.queues", count),
    Field("consumers", "object_totals.consumers", count),
    Field("messages", "queue_totals.messages", count),
    Field("messages_ready", "queue_totals.messages_ready", count),
    Field("messages_unacked", "queue_totals.messages_unacknowledged", count),
)


def decode_overview(payload: Any, version: Version | None) -> tuple[Overview, Gaps]:
    """The overview and its gaps; an answer that is not an object is an empty overview and a gap."""
    gaps = Gaps()
    if not isinstance(payload, dict):
        gaps["overview"] += 1
        return Overview(), gaps
    values = read(_FIELDS, payload, version, gaps)
    return Overview(**values, stats=read_stats(payload, gaps), churn=_churn(payload, gaps)), gaps


def _churn(payload: dict[str, Any], gaps: Gaps) -> dict[str, int]:
    try:
        rates = mapping(payload.get("churn_rates", {}))
    except ValueError:
        gaps["churn"] += 1
        return {}
    counts = {}
    for key, value in rates.items():
        if key.endswith("_details"):
            continue
        try:
            counts[key] = count(value)
        except ValueError:
            gaps["churn"] += 1
    return counts
