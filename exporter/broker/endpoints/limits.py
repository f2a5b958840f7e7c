"""`/api/vhost-limits` and `/api/user-limits`."""

from ackscope.topology import Limit
from exporter.broker.fields import Gaps, Version, by_key, each_once, mapping, name, objects, whole


def decode_limits(payload: object, version: Version | None) -> tuple[tuple[Limit, ...], Gaps]:
    """Limits and gaps; a limit without subject or number is dropped and counted.

    Args:
        payload: endpoint -> list of {"vhost" or "user", "value": {name of a limit: number}}. 4.3 shows user limits to
            administrators only: a gap for other users.
        version: not used.
    """
    del version
    gaps = Gaps()
    limits = []
    for path, items in by_key(payload, "limits", gaps):
        scope = "user" if path.endswith("/user-limits") else "vhost"
        gap = f"{scope}-limits"
        for item in objects(items, gap, gaps):
            try:
                subject, values = name(item.get(scope)), mapping(item.get("value"))
            except ValueError:
                gaps[gap] += 1
                continue
            for limit, value in values.items():
                try:
                    limits.append(Limit(scope=scope, subject=subject, name=limit, value=whole(value)))
                except ValueError:
                    gaps[gap] += 1
    return each_once(limits, lambda it: (it.scope, it.subject, it.name)), gaps
