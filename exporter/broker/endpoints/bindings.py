"""`/api/bindings`: how exchanges are bound to queues and to each other."""

from collections import Counter

from ackscope.topology import Binding, Bindings
from exporter.broker.fields import Field, FieldTable, Gaps, Version, name, objects, read, title

MAX_LISTED = 20_000
"""Above this number bindings are only counted."""

_FIELDS = FieldTable(
    Field("vhost", "", name, required=True),
    Field("source", "", name, required=True),
    Field("destination", "", name, required=True),
    Field("destination_type", "", name, required=True),
    # "" is a valid routing key.
    Field("routing_key", "", title, required=True),
)

_IDENTITY = ("vhost", "source", "destination", "destination_type")


def decode_bindings(payload: object, version: Version | None) -> tuple[Bindings, Gaps]:
    """Bindings and gaps; a binding without source or destination is dropped and counted.

    Bindings of the default exchange are counted but never listed: every queue has one.
    """
    gaps = Gaps()
    counts: Counter[tuple[str, str]] = Counter()
    listed: list[Binding] | None = []
    for item in objects(payload, "bindings", gaps):
        if item.get("source") == "" and isinstance(item.get("vhost"), str) and item["vhost"]:
            # Fast path: each queue has such a binding, so there may be 100,000.
            counts[item["vhost"], ""] += 1
            continue
        values = read(_FIELDS, item, version, gaps)
        if any(values[attribute] is None for attribute in _IDENTITY):
            continue
        counts[values["vhost"], values["source"]] += 1
        if listed is not None and values["routing_key"] is not None:
            listed.append(Binding(**values))
            if len(listed) > MAX_LISTED:
                listed = None
    return Bindings(counts=dict(counts), listed=None if listed is None else tuple(listed)), gaps
