"""`/api/shovels` and `/api/federation-links`: links that move messages between brokers.

The time of the last state change is ignored: the broker sends the local time of its node without a time zone
(`calendar:local_time/0` in `rabbit_shovel_status` and `rabbit_federation_status`).
"""

import re
from typing import Any

from ackscope.topology import Link
from exporter.broker.fields import Field, FieldTable, Gaps, Version, by_key, count, if_set, name, objects, read, text

_MESSAGE = re.compile(r"\{amqp_msg,.*")
_SAID = re.compile(r'<<"([^"]*)">>')
_CREDENTIALS = re.compile(r"(\w://)[^/\s\"]*@")
"""User and password in a URI, as in amqp://user:password@host."""

_MAX_REASON_LENGTH = 300


def _uri_without_credentials(value: Any) -> str:
    return _CREDENTIALS.sub(r"\1", text(value))


def _error_text(value: Any) -> str | None:
    """Return the error text of the broker on one line, truncated, without credentials and without a message.

    A shovel whose publish fails reports the whole call with the message that it published.
    """
    line = " ".join(_CREDENTIALS.sub(r"\1", name(value)).split()).strip('"')
    line = _MESSAGE.sub("{amqp_msg, ...", line)
    if (said := _SAID.fullmatch(line)) is not None:
        line = said[1]
    return line[:_MAX_REASON_LENGTH] or None


_SHOVEL = FieldTable(
    Field("name", "", name, required=True),
    Field("vhost", "", if_set(name)),
    Field("node", "", text),
    Field("type", "", text),
    Field("state", "", text, required=True),
    Field("reason", "", if_set(_error_text)),
    Field("source", "src_uri", if_set(_uri_without_credentials)),
    Field("destination", "dest_uri", if_set(_uri_without_credentials)),
    Field("source_queue", "src_queue", if_set(name)),
    Field("source_exchange", "src_exchange", if_set(name)),
    Field("source_key", "src_exchange_key", if_set(name)),
    Field("target_queue", "dest_queue", if_set(name)),
    Field("target_exchange", "dest_exchange", if_set(name)),
    Field("target_key", "dest_exchange_key", if_set(name)),
    Field("forwarded", "", if_set(count)),
)

_FEDERATION = FieldTable(
    Field("name", "upstream", name, required=True),
    Field("vhost", "", name),
    Field("node", "", text),
    Field("type", "", text),
    Field("state", "status", text, required=True),
    Field("reason", "error", if_set(_error_text)),
    Field("upstream", "", name),
    Field("source", "uri", if_set(_uri_without_credentials)),
    Field("source_queue", "upstream_queue", if_set(name)),
    Field("source_exchange", "upstream_exchange", if_set(name)),
)


def decode_links(payload: object, version: Version | None) -> tuple[tuple[Link, ...], Gaps]:
    """Shovels and federation links, and gaps; a link without a name is dropped and counted.

    Since 4.0 a blocked shovel has the state "running" and a separate `blocked_status`; its state here is that status,
    "blocked" or "flow".

    Args:
        payload: endpoint -> list; an endpoint is absent if its plugin is disabled.
        version: not used.
    """
    gaps = Gaps()
    links = []
    for path, items in by_key(payload, "links", gaps):
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
    """Return the local exchange or queue of a federation link."""
    local = item.get("exchange", item.get("queue"))
    if isinstance(local, str) and local:
        return local
    gaps["local"] += 1
    return None
