"""`/api/channels`."""

from ackscope.snapshot import Channel
from exporter.broker.endpoints.message_stats import read_stats
from exporter.broker.fields import (
    Field,
    FieldTable,
    Gaps,
    Version,
    count,
    each_once,
    flag,
    if_set,
    moment,
    name,
    objects,
    read,
    text,
)

_FIELDS = FieldTable(
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


def decode_channels(payload: object, version: Version | None) -> tuple[tuple[Channel, ...], Gaps]:
    """Channels and gaps; a channel without a name is dropped and counted."""
    gaps = Gaps()
    channels = []
    for item in objects(payload, "channels", gaps):
        values = read(_FIELDS, item, version, gaps)
        if values["name"] is not None:
            channels.append(Channel(**values, stats=read_stats(item, gaps)))
    return each_once(channels, lambda it: it.name), gaps
