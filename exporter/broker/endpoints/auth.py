"""`/api/auth/attempts/<node>`: login attempts since the node started."""

from ackscope.topology import AuthAttempts
from exporter.broker.fields import Field, FieldTable, Gaps, Version, by_key, count, each_once, name, objects, read

_FIELDS = FieldTable(
    Field("protocol", "", name, required=True),
    Field("total", "auth_attempts", count),
    Field("succeeded", "auth_attempts_succeeded", count),
    Field("failed", "auth_attempts_failed", count),
)


def decode_auth(payload: object, version: Version | None) -> tuple[tuple[AuthAttempts, ...], Gaps]:
    """Return login attempts by node and protocol, and gaps; an entry without a protocol is dropped and counted.

    Args:
        payload: node -> list, or {"error": text} for a node that could not be read, which is a gap.
        version: not used.
    """
    gaps = Gaps()
    attempts = []
    for node, items in by_key(payload, "auth", gaps):
        for item in objects(items, "auth", gaps):
            values = read(_FIELDS, item, version, gaps)
            if values["protocol"] is not None:
                attempts.append(AuthAttempts(node=node, **values))
    return each_once(attempts, lambda it: (it.node, it.protocol)), gaps
