"""`/api/health/checks/...`: what the node that answers says of itself and its cluster.

They answer at once even where the aggregating endpoints hang, and know of an alarm before `/api/nodes` does.
"""

from typing import Any, NamedTuple

from ackscope.snapshot import Alarm, HealthCheck
from exporter.broker.fields import Gaps, Version, objects


class Check(NamedTuple):
    """One check of the API.

    Attributes:
        name: as findings and metrics call it.
        path: below `/api/health/checks/`.
        since: the first version that has it.
        until: the first version that no longer has it.
    """

    name: str
    path: str
    since: Version | None = None
    until: Version | None = None


CHECKS = (
    Check("alarms", "alarms"),
    Check("local-alarms", "local-alarms"),
    Check("virtual-hosts", "virtual-hosts"),
    Check("node-is-quorum-critical", "node-is-quorum-critical"),
    Check("node-is-mirror-sync-critical", "node-is-mirror-sync-critical", until=(4, 0)),
    Check("certificate-expiration", "certificate-expiration/1/months"),
    Check("metadata-store-initialized", "metadata-store/initialized", since=(4, 0)),
    Check("ready-to-serve-clients", "ready-to-serve-clients", since=(4, 1)),
    Check("is-in-service", "is-in-service", since=(4, 1)),
    Check("below-node-connection-limit", "below-node-connection-limit", since=(4, 1)),
    Check(
        "quorum-queues-without-elected-leaders",
        "quorum-queues-without-elected-leaders/all-vhosts",
        since=(4, 1),
    ),
)
"""Source: the HTTP API reference of 3.10 to 4.3 (https://www.rabbitmq.com/docs/http-api-reference).

`port-listener` is left out: which ports there should be is not known here.
"""


def checks_of(version: Version | None) -> tuple[Check, ...]:
    """The checks that a version should have; all of them while it is unknown."""
    if version is None:
        return CHECKS
    return tuple(
        check
        for check in CHECKS
        if (check.since is None or version >= check.since) and (check.until is None or version < check.until)
    )


def decode_health(payload: Any, version: Version | None) -> tuple[tuple[HealthCheck, ...], Gaps]:
    """The checks and their gaps.

    Args:
        payload: check name -> {"status": HTTP status, "body": JSON} or {"error": why it could not be asked}.
        version: makes no difference.
    """
    del version
    gaps = Gaps()
    answers = payload if isinstance(payload, dict) else {}
    if not isinstance(payload, dict):
        gaps["health"] += 1
    return tuple(_check(name, answer, gaps) for name, answer in answers.items()), gaps


def _check(name: str, answer: Any, gaps: Gaps) -> HealthCheck:
    status = answer.get("status") if isinstance(answer, dict) else None
    if status not in (200, 503):
        error = answer.get("error") if isinstance(answer, dict) else None
        if not isinstance(error, str):
            gaps[name] += 1
        return HealthCheck(name=name, ok=None, reason=error if isinstance(error, str) else None)
    body = answer.get("body")
    if not isinstance(body, dict) or body.get("status") not in ("ok", "failed"):
        gaps[name] += 1
        return HealthCheck(name=name, ok=None)
    reason = body.get("reason")
    return HealthCheck(
        name=name,
        ok=status == 200 and body["status"] == "ok",
        reason=reason if isinstance(reason, str) and reason else None,
        alarms=_alarms(body.get("alarms", []), gaps),
    )


def _alarms(payload: Any, gaps: Gaps) -> tuple[Alarm, ...]:
    alarms = []
    for item in objects(payload, "alarms", gaps):
        node, resource = item.get("node"), item.get("resource")
        if isinstance(node, str) and isinstance(resource, str):
            alarms.append(Alarm(node=node, resource=resource))
        else:
            gaps["alarms"] += 1
    return tuple(alarms)
