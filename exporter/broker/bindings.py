"""`/api/bindings`: how exchanges are bound to queues and to each other."""

from collections import Counter
from typing import Any

from ackscope.topology import Binding, Bindings
from exporter.broker.fields import Field, Gaps, Table, Version, name, objects, read, title

MOST_LISTED = 20_000
"""More bindings than this are counted, and not held one by one."""

_FIELDS = Table(
    Field("vhost", "", name, required=True),
    Field("source", "", name, required=True),
    Field("destination", "", name, required=True),
    Field("destination_type", "", name, required=True),
    # "" is a routing key too.
    Field("routing_key", "", title, required=True),
)

_IDENTITY = ("vhost", "source", "destination", "destination_type")


def decode_bindings(payload: Any, version: Version | None) -> tuple[Bindings, Gaps]:
    """The bindings and their gaps; one whose ends are not told is dropped and counted.

    Bindings of the default exchange are counted and never listed: every queue has one.
    """
    gaps = Gaps()
    counts: Counter[tuple[str, str]] = Counter()
    listed: list[Binding] | None = []
    for item in objects(payload, "bindings", gaps):
        if item.get("source") == "" and isinstance(item.get("vhost"), str) and item["vhost"]:
            # One for each queue: the short way, for 100,000 of them.
            counts[item["vhost"], ""] += 1
            continue
        values = read(_FIELDS, item, version, gaps)
        if any(values[attribute] is None for attribute in _IDENTITY):
            continue
        counts[values["vhost"], values["source"]] += 1
        if listed is not None and values["routing_key"] is not None:
            listed.append(Binding(**values))
            if len(listed) > MOST_LISTED:
                listed = None
    return Bindings(counts=dict(counts), listed=None if listed is None else tuple(listed)), gaps
