"""`/api/exchanges`."""

from ackscope.topology import Exchange
from exporter.broker.endpoints.message_stats import read_stats
from exporter.broker.fields import (
    Field,
    FieldTable,
    Gaps,
    Version,
    each_once,
    flag,
    if_set,
    mapping,
    name,
    objects,
    read,
    text,
    title,
)

_FIELDS = FieldTable(
    Field("vhost", "", name, required=True),
    # The name of the default exchange is "".
    Field("name", "", title, required=True),
    Field("type", "", text),
    Field("durable", "", flag),
    Field("auto_delete", "", flag),
    Field("internal", "", flag),
    Field("policy", "", if_set(name)),
    Field("arguments", "", mapping),
)


def decode_exchanges(payload: object, version: Version | None) -> tuple[tuple[Exchange, ...], Gaps]:
    """Exchanges and gaps; an exchange without name or virtual host is dropped and counted."""
    gaps = Gaps()
    exchanges = []
    for item in objects(payload, "exchanges", gaps):
        values = read(_FIELDS, item, version, gaps)
        if values["name"] is not None and values["vhost"] is not None:
            values["arguments"] = values["arguments"] or {}
            exchanges.append(Exchange(**values, stats=read_stats(item, gaps)))
    return each_once(exchanges, lambda it: (it.vhost, it.name)), gaps
