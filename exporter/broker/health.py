"""`/api/health/checks/...`: what the node that answers says of itself and its cluster.

They answer at once even where the aggregating endpoints hang, and know of an alarm before `/api/nodes` does.
"""

from dataclasses import replace
from typing import Any, NamedTuple

from ackscope.snapshot import Alarm, HealthCheck
from ackscope.topology import Certificate
from exporter.broker.fields import Field, Gaps, Table, Version, count, if_set, moment, name, objects, read


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
    Check("metadata-store-initialized-with-data", "metadata-store/initialized/with-data", since=(4, 0)),
    Check("ready-to-serve-clients", "ready-to-serve-clients", since=(4, 1)),
    Check("is-in-service", "is-in-service", since=(4, 1)),
    Check("below-node-connection-limit", "below-node-connection-limit", since=(4, 1)),
    Check(
        "quorum-queues-without-elected-leaders",
        "quorum-queues-without-elected-leaders/all-vhosts",
        since=(4, 1),
    ),
    Check("reached-target-cluster-size", "reached-target-cluster-size", since=(4, 2)),
)
"""Source: the HTTP API reference of 3.10 to 4.3 (https://www.rabbitmq.com/docs/http-api-reference).

`port-listener` and `protocol-listener` are left out: which ports and protocols there should be is not known here.
"""

CERTIFICATES = Check("certificates", "certificate-expiration/100/years")
"""Asked for its list only: within a hundred years every certificate of a listener ends, so that it names them all.

But for that of the management listener itself, whose options the broker's check does not look into (seen on 4.3.6).
"""

_EXPIRING = "certificate-expiration"
"""The check whose verdict it is: within one month."""

_CERTIFICATE = Table(
    Field("node", "", name, required=True),
    Field("protocol", "", name, required=True),
    Field("port", "", if_set(count)),
)


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
        payload: check name -> {"status": HTTP status, "body": JSON} or {"error": why it could not be asked}; with
            "age", in seconds, where the answer is older than the reading.
        version: makes no difference.
    """
    del version
    gaps = Gaps()
    answers = payload if isinstance(payload, dict) else {}
    if not isinstance(payload, dict):
        gaps["health"] += 1
    found = _certificates(answers[CERTIFICATES.name], gaps) if CERTIFICATES.name in answers else ()
    checks = (_check(called, answer, gaps) for called, answer in answers.items() if called != CERTIFICATES.name)
    return tuple(
        replace(check, certificates=found) if check.name == _EXPIRING and found else check for check in checks
    ), gaps


def _certificates(answer: Any, gaps: Gaps) -> tuple[Certificate, ...]:
    """The certificates of the node that answers, one a TLS listener: that of its file which ends first."""
    body = answer.get("body") if isinstance(answer, dict) else None
    if not isinstance(body, dict):
        # Where it could not be asked, the check beside it tells why.
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


def _first(dates: Any, gaps: Gaps) -> float | None:
    """The earliest of the dates, which are UTC; None where the listener's own certificate has none."""
    try:
        if not isinstance(dates, list):
            raise ValueError(dates)  # noqa: TRY004, TRY301  one kind of error for all that is unusable
        # An empty list: only that of the authority ends within the time asked for.
        return min((moment(date) for date in dates), default=None)
    except ValueError:
        gaps["certificates"] += 1
        return None


def _check(called: str, answer: Any, gaps: Gaps) -> HealthCheck:
    status = answer.get("status") if isinstance(answer, dict) else None
    if status not in (200, 503):
        error = answer.get("error") if isinstance(answer, dict) else None
        if not isinstance(error, str):
            gaps[called] += 1
        return HealthCheck(name=called, ok=None, reason=error if isinstance(error, str) else None)
    body = answer.get("body")
    if not isinstance(body, dict) or body.get("status") not in ("ok", "failed"):
        gaps[called] += 1
        return HealthCheck(name=called, ok=None)
    reason = body.get("reason", "")
    if not isinstance(reason, str):
        gaps[called] += 1
    return HealthCheck(
        name=called,
        ok=status == 200 and body["status"] == "ok",
        reason=reason if isinstance(reason, str) and reason else None,
        age=age if isinstance(age := answer.get("age"), float) else None,
        alarms=_alarms(body.get("alarms", []), gaps),
    )


_RESOURCES = {"disk space": "disk", "file descriptors": "file_descriptor_limit"}
"""The check's words (`rabbit_alarm:format_as_map`) and the names that the broker has for them elsewhere."""


def _alarms(payload: Any, gaps: Gaps) -> tuple[Alarm, ...]:
    alarms = []
    for item in objects(payload, "alarms", gaps):
        node, resource = item.get("node"), item.get("resource")
        if isinstance(node, str) and isinstance(resource, str):
            alarms.append(Alarm(node=node, resource=_RESOURCES.get(resource, resource)))
        else:
            gaps["alarms"] += 1
    return tuple(alarms)
