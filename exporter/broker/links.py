"""`/api/shovels` and `/api/federation-links`: what moves messages between brokers.

When a link changed its state is not read: the broker tells it in the local time of its node, without the zone
(`calendar:local_time/0` in `rabbit_shovel_status` and `rabbit_federation_status`).
"""

import re
from typing import Any

from ackscope.topology import Link
from exporter.broker.fields import Field, Gaps, Table, Version, if_set, name, objects, of_paths, read, text

_CREDENTIALS = re.compile(r"(\w://)[^/\s\"]*@")
"""User and password of an address, as in amqp://user:password@host."""

_LONGEST_REASON = 300


def _address(value: Any) -> str:
    """An address without credentials."""
    return _CREDENTIALS.sub(r"\1", text(value))


def _words(value: Any) -> str | None:
    """What the broker says went wrong: one line, bounded, without credentials."""
    said = " ".join(_CREDENTIALS.sub(r"\1", name(value)).split()).strip('"')
    return said[:_LONGEST_REASON] or None


_SHOVEL = Table(
    Field("name", "", name, required=True),
    Field("vhost", "", if_set(name)),
    Field("node", "", text),
    Field("type", "", text),
    Field("state", "", text, required=True),
    Field("reason", "", if_set(_words)),
    Field("source", "src_uri", if_set(_address)),
    Field("destination", "dest_uri", if_set(_address)),
)

_FEDERATION = Table(
    Field("name", "upstream", name, required=True),
    Field("vhost", "", name),
    Field("node", "", text),
    Field("type", "", text),
    Field("state", "status", text, required=True),
    Field("reason", "error", if_set(_words)),
    Field("upstream", "", name),
    Field("source", "uri", if_set(_address)),
)


def decode_links(payload: Any, version: Version | None) -> tuple[tuple[Link, ...], Gaps]:
    """The shovels and federation links and their gaps; one without a name is dropped and counted.

    A shovel that is blocked says so beside its state "running" (4.0+): then "blocked" or "flow" is its state.

    Args:
        payload: endpoint -> list; an endpoint is missing where its plugin is off.
        version: makes no difference.
    """
    gaps = Gaps()
    links = []
    for path, items in of_paths(payload, "links", gaps):
        shovels = path.endswith("/shovels")
        for item in objects(items, "shovels" if shovels else "federation-links", gaps):
            values = read(_SHOVEL if shovels else _FEDERATION, item, version, gaps)
            if values["name"] is None:
                continue
            if shovels:
                if values["state"] == "running" and item.get("blocked_status") in ("blocked", "flow"):
                    values["state"] = item["blocked_status"]
                links.append(Link(kind="shovel", **values))
            else:
                links.append(Link(kind="federation", local=_local(item, gaps), **values))
    return tuple(links), gaps


def _local(item: dict[str, Any], gaps: Gaps) -> str | None:
    """The exchange or queue that a federation link serves."""
    kept = item.get("exchange", item.get("queue"))
    if isinstance(kept, str) and kept:
        return kept
    gaps["local"] += 1
    return None
