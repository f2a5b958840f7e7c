"""`/api/channels`."""

from typing import Any

from ackscope.snapshot import Channel
from exporter.broker.fields import Field, Gaps, Table, Version, count, flag, if_set, moment, name, objects, read, text
from exporter.broker.stats import read_stats

_FIELDS = Table(
    Field("name", "", name, required=True),
    Field("node", "", text),
    Field("vhost", "", name),
    Field("user", "", name),
    Field("number", "", count),
    Field("connection_name", "connection_details.name", name),
    Field("state", "", text),
    Field("confirm", "", flag),
    Field("transactional", "", flag),
    Field("consumer_count", "", count),
    Field("prefetch_count", "", count),
    Field("global_prefetch_count", "", count),
    Field("messages_unacked", "messages_unacknowledged", count),
    Field("messages_unconfirmed", "", count),
    Field("messages_uncommitted", "", count),
    Field("acks_uncommitted", "", count),
    Field("idle_since", "", if_set(moment)),
    Field("reductions", "", count),
    Field("pending_raft_commands", "", count),
)


def decode_channels(payload: Any, version: Version | None) -> tuple[tuple[Channel, ...], Gaps]:
    """The channels and their gaps; one without a name is dropped and counted."""
    gaps = Gaps()
    channels = []
    for item in objects(payload, "channels", gaps):
        values = read(_FIELDS, item, version, gaps)
        if values["name"] is not None:
            channels.append(Channel(**values, stats=read_stats(item, gaps)))
    return tuple(channels), gaps
