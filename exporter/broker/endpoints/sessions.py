"""`/api/connections/{name}/sessions`, from 4.1 on: AMQP 1.0 sessions and their links."""

from typing import Any

from ackscope.amqp10 import AmqpLink, AmqpSession
from exporter.broker.fetch import is_error
from exporter.broker.fields import (
    Field,
    FieldTable,
    Gaps,
    Version,
    by_key,
    count,
    flag,
    if_defined,
    interned,
    name,
    objects,
    read,
)

_SESSION = FieldTable(
    Field("number", "channel_number", count, required=True),
    Field("unsettled", "outgoing_unsettled_deliveries", count),
    Field("remote_incoming_window", "", if_defined(count)),
    Field("incoming_window", "", if_defined(count)),
)
_LINK = (
    Field("handle", "", count, required=True),
    Field("name", "link_name", interned(name)),
    Field("credit", "", count),
    Field("delivery_count", "", count),
)
# The broker names links by what it does itself: a consumer is attached to one of its outgoing links.
_CONSUMING = FieldTable(
    *_LINK,
    Field("address", "source_address", if_defined(interned(name))),
    Field("queue", "queue_name", interned(name)),
    Field("settled_by_sender", "send_settled", flag),
)


def _sender_settles(mode: object) -> bool | None:
    """Whether a publisher settles what it sends; a mode of `mixed` leaves that open for each message."""
    if not isinstance(mode, str) or mode not in {"settled", "unsettled", "mixed"}:
        raise ValueError(mode)
    return {"settled": True, "unsettled": False}.get(str(mode))


_PUBLISHING = FieldTable(
    *_LINK,
    Field("address", "target_address", if_defined(interned(name))),
    Field("unconfirmed", "unconfirmed_messages", count),
    Field("settled_by_sender", "snd_settle_mode", if_defined(_sender_settles)),
)


def decode_sessions(payload: object, version: Version | None) -> tuple[tuple[AmqpSession, ...], Gaps]:
    """Sessions of some connections, and gaps; a session without a number and a link without a handle are left out."""
    gaps = Gaps()
    sessions = []
    for connection, answer in by_key(payload, "sessions", gaps):
        if is_error(answer):
            gaps["sessions"] += 1
            continue
        for item in objects(answer, "sessions", gaps):
            values = read(_SESSION, item, version, gaps)
            if values["number"] is None:
                continue
            consuming = _links(item, "outgoing_links", _CONSUMING, version, gaps)
            publishing = _links(item, "incoming_links", _PUBLISHING, version, gaps)
            sessions.append(
                AmqpSession(connection_name=connection, consuming=consuming, publishing=publishing, **values)
            )
    return tuple(sessions), gaps


def _links(
    item: dict[str, Any], key: str, table: FieldTable, version: Version | None, gaps: Gaps
) -> tuple[AmqpLink, ...]:
    found = (read(table, each, version, gaps) for each in objects(item.get(key, []), key, gaps))
    return tuple(AmqpLink(**values) for values in found if values["handle"] is not None)
