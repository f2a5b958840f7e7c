"""`/api/connections`."""

import re

from ackscope.snapshot import Connection
from exporter.broker.fields import (
    Field,
    FieldTable,
    Gaps,
    Version,
    count,
    each_once,
    flag,
    if_set,
    milliseconds,
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
    Field("state", "", text),
    Field("protocol", "", text),
    Field("client_name", "client_properties.connection_name", if_set(name)),
    Field("client_product", "client_properties.product", if_set(name)),
    Field("container_id", "", if_set(name)),
    Field("client_id", "client_properties.client_id", if_set(name)),
    Field("peer_host", "", text),
    Field("peer_port", "", count),
    Field("channels", "", count),
    Field("heartbeat", "timeout", count),
    Field("connected_at", "", milliseconds),
    Field("recv_oct", "", count),
    Field("send_oct", "", count),
    Field("send_pend", "", count),
    Field("recv_cnt", "", count),
    Field("send_cnt", "", count),
    Field("reductions", "", count),
    Field("channel_max", "", count),
    Field("tls", "ssl", flag),
    Field("auth_mechanism", "", if_set(text)),
)


_GENERATED = re.compile(r"(ID:)?[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}(:\d+)?", re.IGNORECASE)
"""A container id or client id that no person chose: libraries use a UUID unless the application sets one."""


def decode_connections(payload: object, version: Version | None) -> tuple[tuple[Connection, ...], Gaps]:
    """Connections and gaps; a connection without a name is dropped and counted."""
    gaps = Gaps()
    connections = []
    for item in objects(payload, "connections", gaps):
        # A client without client properties: Erlang sends an empty object as [].
        cleaned = {**item, "client_properties": {}} if item.get("client_properties") == [] else item
        values = read(_FIELDS, cleaned, version, gaps)
        own_id = values["container_id"] or values["client_id"]
        if values["client_name"] is None and own_id is not None and not _GENERATED.fullmatch(own_id):
            values["client_name"] = own_id
        if values["name"] is not None:
            connections.append(Connection(**values))
    return each_once(connections, lambda it: it.name), gaps
