"""`/api/health/checks/...`: health checks of the responding node and its cluster.

They answer immediately even when the aggregating endpoints hang, and report an alarm before `/api/nodes` does.
"""

from dataclasses import replace
from typing import NamedTuple

from ackscope.snapshot import Alarm, HealthCheck
from ackscope.topology import Certificate
from exporter.broker.fields import (
    Field,
    FieldTable,
    Gaps,
    Version,
    count,
    each_once,
    if_set,
    moment,
    name,
    objects,
    read,
)


class HealthEndpoint(NamedTuple):
    """One health check of the API.

    Attributes:
        name: its name in findings and metrics.
        path: relative to `/api/health/checks/`.
        since: the first version that has it.
        until: the first version that no longer has it.
    """

    name: str
    path: str
    since: Version | None = None
    until: Version | None = None


CHECKS = (
    HealthEndpoint("alarms", "alarms"),
    HealthEndpoint("local-alarms", "local-alarms"),
    HealthEndpoint("virtual-hosts", "virtual-hosts"),
    HealthEndpoint("node-is-quorum-critical", "node-is-quorum-critical"),
    HealthEndpoint("node-is-mirror-sync-critical", "node-is-mirror-sync-critical", until=(4, 0)),
    HealthEndpoint("certificate-expiration", "certificate-expiration/1/months"),
    HealthEndpoint("metadata-store-initialized", "metadata-store/initialized", since=(4, 0)),
    HealthEndpoint("metadata-store-initialized-with-data", "metadata-store/initialized/with-data", since=(4, 0)),
    HealthEndpoint("ready-to-serve-clients", "ready-to-serve-clients", since=(4, 1)),
    HealthEndpoint("is-in-service", "is-in-service", since=(4, 1)),
    HealthEndpoint("below-node-connection-limit", "below-node-connection-limit", since=(4, 1)),
    HealthEndpoint(
        "quorum-queues-without-elected-leaders",
        "quorum-queues-without-elected-leaders/all-vhosts",
        since=(4, 1),
    ),
    HealthEndpoint("reached-target-cluster-size", "reached-target-cluster-size", since=(4, 2)),
)
"""Source: the HTTP API reference of 3.10 to 4.3 (https://www.rabbitmq.com/docs/http-api-reference).

`port-listener` and `protocol-listener` are omitted: the expected ports and protocols are not known here.
"""

CERTIFICATES = HealthEndpoint("certificates", "certificate-expiration/100/years")
"""Check that is requested only for its list: all listener certificates expire within 100 years, so it lists them all.

The exception is the management listener itself, whose options the check ignores (seen on 4.3.6).
"""

_EXPIRING = "certificate-expiration"
"""The check for certificates that expire within one month."""

_CERTIFICATE = FieldTable(
    Field("node", "", name, required=True),
    Field("protocol", "", name, required=True),
    Field("port", "", if_set(count)),
)


def checks_for(version: Version | None) -> tuple[HealthEndpoint, ...]:
    """Return the checks that a version should have; all checks if the version is unknown."""
    if version is None:
        return CHECKS
    return tuple(
        check
        for check in CHECKS
        if (check.since is None or version >= check.since) and (check.until is None or version < check.until)
    )


def decode_health(payload: object, version: Version | None) -> tuple[tuple[HealthCheck, ...], Gaps]:
    """Health checks and gaps.

    Args:
        payload: check name -> {"status": HTTP status, "body": JSON} or {"error": text}; with "age" in seconds if the
            answer is reused from an earlier poll.
        version: not used.
    """
    del version
    gaps = Gaps()
    answers = payload if isinstance(payload, dict) else {}
    if not isinstance(payload, dict):
        gaps["health"] += 1
    found = _certificates(answers[CERTIFICATES.name], gaps) if CERTIFICATES.name in answers else ()
    checks = (_check(name_, answer, gaps) for name_, answer in answers.items() if name_ != CERTIFICATES.name)
    return tuple(
        replace(check, certificates=found) if check.name == _EXPIRING and found else check for check in checks
    ), gaps


def _certificates(answer: object, gaps: Gaps) -> tuple[Certificate, ...]:
    """Return the certificates of the responding node: per TLS listener, the one in its file that expires first."""
    body = answer.get("body") if isinstance(answer, dict) else None
    if not isinstance(body, dict):
        # If the request failed, the certificate-expiration check carries the error.
        if not isinstance(answer, dict) or "error" not in answer:
            gaps["certificates"] += 1
        return ()
    certificates = []
    for item in objects(body.get("expired", []), "certificates", gaps):
        values = read(_CERTIFICATE, item, None, gaps)
        expires = _first(item.get("certfile_expires_on"), gaps)
        if values["node"] is not None and values["protocol"] is not None and expires is not None:
            certificates.append(Certificate(**values, expires=expires))
    return tuple(certificates)


def _first(dates: object, gaps: Gaps) -> float | None:
    """Return the earliest date (UTC); None if there is none."""
    try:
        if not isinstance(dates, list):
            raise ValueError(dates)  # noqa: TRY004, TRY301  one kind of error for every unusable value
        # Empty list: only the CA certificate expires within the requested period.
        return min((moment(date) for date in dates), default=None)
    except ValueError:
        gaps["certificates"] += 1
        return None


def _check(check_name: str, answer: object, gaps: Gaps) -> HealthCheck:
    content = answer if isinstance(answer, dict) else {}
    status = content.get("status")
    if status not in (200, 503):
        error = content.get("error")
        if not isinstance(error, str):
            gaps[check_name] += 1
        return HealthCheck(name=check_name, ok=None, reason=error if isinstance(error, str) else None)
    body = content.get("body")
    if not isinstance(body, dict) or body.get("status") not in ("ok", "failed"):
        gaps[check_name] += 1
        return HealthCheck(name=check_name, ok=None)
    reason = body.get("reason", "")
    if not isinstance(reason, str):
        gaps[check_name] += 1
    return HealthCheck(
        name=check_name,
        ok=status == 200 and body["status"] == "ok",
        reason=reason if isinstance(reason, str) and reason else None,
        age=age if isinstance(age := content.get("age"), float) else None,
        alarms=_alarms(body.get("alarms", []), gaps),
    )


_RESOURCES = {"disk space": "disk", "file descriptors": "file_descriptor_limit"}
"""Resource names of the check (`rabbit_alarm:format_as_map`) -> names that the broker uses elsewhere."""


def _alarms(payload: object, gaps: Gaps) -> tuple[Alarm, ...]:
    alarms = []
    for item in objects(payload, "alarms", gaps):
        node, resource = item.get("node"), item.get("resource")
        if isinstance(node, str) and isinstance(resource, str):
            alarms.append(Alarm(node=node, resource=_RESOURCES.get(resource, resource)))
        else:
            gaps["alarms"] += 1
    return each_once(alarms, lambda it: (it.node, it.resource))
