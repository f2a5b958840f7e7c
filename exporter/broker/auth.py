"""`/api/auth/attempts/<node>`: logins, counted since the node started."""

from typing import Any

from ackscope.topology import AuthAttempts
from exporter.broker.fields import Field, Gaps, Table, Version, count, name, objects, of_paths, read

_FIELDS = Table(
    Field("protocol", "", name, required=True),
    Field("total", "auth_attempts", count),
    Field("succeeded", "auth_attempts_succeeded", count),
    Field("failed", "auth_attempts_failed", count),
)


def decode_auth(payload: Any, version: Version | None) -> tuple[tuple[AuthAttempts, ...], Gaps]:
    """The counts and their gaps, a node and protocol each; one without a protocol is dropped and counted.

    Args:
        payload: node -> list, or {"error": why} for a node that could not be asked, which is a gap.
        version: makes no difference.
    """
    gaps = Gaps()
    attempts = []
    for node, items in of_paths(payload, "auth", gaps):
        for item in objects(items, "auth", gaps):
            values = read(_FIELDS, item, version, gaps)
            if values["protocol"] is not None:
                attempts.append(AuthAttempts(node=node, **values))
    return tuple(attempts), gaps
