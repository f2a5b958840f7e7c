"""`/api/exchanges`."""

from typing import Any

from ackscope.topology import Exchange
from exporter.broker.fields import Field, Gaps, Table, Version, flag, if_set, mapping, name, objects, read, text, title
from exporter.broker.stats import read_stats

_FIELDS = Table(
    Field("vhost", "", name, required=True),
    # The default exchange has the name "".
    Field("name", "", title, required=True),
    Field("type", "", text),
    Field("durable", "", flag),
    Field("auto_delete", "", flag),
    Field("internal", "", flag),
    Field("policy", "", if_set(name)),
    Field("arguments", "", mapping),
)


def decode_exchanges(payload: Any, version: Version | None) -> tuple[tuple[Exchange, ...], Gaps]:
    """The exchanges and their gaps; one without name or virtual host is dropped and counted."""
    gaps = Gaps()
    exchanges = []
    for item in objects(payload, "exchanges", gaps):
        values = read(_FIELDS, item, version, gaps)
        if values["name"] is not None and values["vhost"] is not None:
            values["arguments"] = values["arguments"] or {}
            exchanges.append(Exchange(**values, stats=read_stats(item, gaps)))
    return tuple(exchanges), gaps
