"""`/api/vhost-limits` and `/api/user-limits`."""

from typing import Any

from ackscope.topology import Limit
from exporter.broker.fields import Gaps, Version, mapping, name, objects, of_paths, whole


def decode_limits(payload: Any, version: Version | None) -> tuple[tuple[Limit, ...], Gaps]:
    """The limits and their gaps; one without its subject or number is dropped and counted.

    Args:
        payload: endpoint -> list of {"vhost" or "user", "value": {name of a limit: number}}.
        version: makes no difference. 4.3 shows limits of users to administrators only: a gap for everybody else.
    """
    del version
    gaps = Gaps()
    limits = []
    for path, items in of_paths(payload, "limits", gaps):
        scope = "user" if path.endswith("/user-limits") else "vhost"
        what = f"{scope}-limits"
        for item in objects(items, what, gaps):
            try:
                subject, values = name(item.get(scope)), mapping(item.get("value"))
            except ValueError:
                gaps[what] += 1
                continue
            for limit, value in values.items():
                try:
                    limits.append(Limit(scope=scope, subject=subject, name=limit, value=whole(value)))
                except ValueError:
                    gaps[what] += 1
    return tuple(limits), gaps
