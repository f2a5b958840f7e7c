"""`/api/overview`: the cluster as a whole."""

from ackscope.snapshot import Overview
from exporter.broker.endpoints.message_stats import read_rates, read_stats
from exporter.broker.fields import Field, FieldTable, Gaps, Version, count, counts, flag, if_set, name, read, text

_FIELDS = FieldTable(
    Field("cluster_name", "", name),
    Field("rabbitmq_version", "", text),
    Field("erlang_version", "", text),
    Field("statistics", "disable_stats", lambda value: not flag(value)),
    Field("rates_mode", "", text),
    Field("node", "", if_set(text)),
    Field("connections", "object_totals.connections", count),
    Field("channels", "object_totals.channels", count),
    Field("exchanges", "object_totals.exchanges", count),
    Field("queues", "object_totals.queues", count),
    Field("consumers", "object_totals.consumers", count),
    Field("messages", "queue_totals.messages", count),
    Field("messages_ready", "queue_totals.messages_ready", count),
    Field("messages_unacked", "queue_totals.messages_unacknowledged", count),
    Field("disk_reads", "message_stats.disk_reads", count),
    Field("disk_writes", "message_stats.disk_writes", count),
)

_SECTIONS = ("object_totals", "queue_totals", "message_stats")


def decode_overview(payload: object, version: Version | None) -> tuple[Overview, Gaps]:
    """The overview and gaps; an answer that is not an object gives an empty overview and a gap."""
    gaps = Gaps()
    if not isinstance(payload, dict):
        gaps["overview"] += 1
        return Overview(), gaps
    # A broker without any activity yet: Erlang sends an empty object as [].
    cleaned = {key: {} if key in _SECTIONS and value == [] else value for key, value in payload.items()}
    return Overview(
        **read(_FIELDS, cleaned, version, gaps),
        stats=read_stats(cleaned, gaps),
        rates=read_rates(cleaned, gaps),
        churn=counts(cleaned, "churn_rates", gaps, skip_suffix="_details"),
    ), gaps
