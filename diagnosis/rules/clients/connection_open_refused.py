"""connection-open-refused: clients log in, are refused when they open their virtual host, and retry.

Such a connection is in no list. Only the counters of logins and of opened connections show it.
A vhost that is down refuses its clients likewise. If the health check of vhosts failed while they were refused, and the
refusals are over since it passes, that was the reason; which vhost it was shows where clients connected then.
Source: https://www.rabbitmq.com/docs/access-control, `/api/auth/attempts/<node>`; seen on 3.10.8 and 4.3.6.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ackscope.clock import Instant
from ackscope.findings import Certainty, Evidence, Fact, Finding, Severity, Subject, source
from diagnosis.contract import RuleResult, View
from diagnosis.rules.clients._shared.logins import RefusedOpenings, refused_openings

NAME = "connection-open-refused"

_CHECK = "virtual-hosts"
_APART = 20.0
"""Seconds by which readings of logins and of health checks may be apart."""
_COME_BACK = 30.0
"""Seconds within which clients connect again after their vhost has."""


@dataclass(frozen=True, slots=True)
class VHostOutage:
    """A time in which the health check of vhosts failed: from the last reading before it to the first one after."""

    began: Instant
    ended: Instant

    @property
    def seconds(self) -> float:
        """Its duration at most."""
        return self.ended.since(self.began)


def evaluate(view: View) -> Iterator[RuleResult]:
    """Compare successful logins with opened connections, in the whole cluster."""
    limits = view.thresholds.clients
    refused = refused_openings(view, limits.auth_within)
    if refused is not None and refused.count >= limits.auth_failures:
        yield _finding(view, refused)


def _outage(view: View, refused: RefusedOpenings) -> VHostOutage | None:
    """Return the outage of a vhost within which clients were refused; None without one, or if they still are."""
    readings = view.window.readings("health")
    failed = [any(each.name == _CHECK and each.ok is False for each in seen.value) for seen in readings]
    if refused.continues or True not in failed:
        return None
    first, last = failed.index(True), len(failed) - 1 - failed[::-1].index(True)
    if first == 0 or last == len(failed) - 1:
        return None
    found = VHostOutage(readings[first - 1].at, readings[last + 1].at)
    return found if -_APART <= refused.since.since(found.began) < found.seconds else None


def _connected_after(view: View, outage: VHostOutage) -> list[Fact]:
    """Return the vhost to which all clients connected that came at the end of an outage; empty if they are several."""
    begin, end = outage.began.wall, outage.ended.wall + _COME_BACK
    found = {each.vhost for each in view.connections if begin <= (each.connected_at or 0.0) <= end and each.vhost}
    return [*found] if len(found) == 1 else []


def _finding(view: View, refused: RefusedOpenings) -> Finding:
    outage = _outage(view, refused)
    many = view.thresholds.clients.auth_failures_many
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if refused.count > many and refused.continues else Severity.INFO,
        subject=Subject(kind="cluster", name=view.window.cluster),
        since=refused.since.iso(),
        facts={
            "refused": refused.count,
            "logins": refused.logins,
            "refused_rate": refused.count / refused.seconds,
            "continues": refused.continues,
            "interval_seconds": refused.seconds,
            "warning_above_refused": many,
            "down_seconds": outage.seconds if outage is not None else None,
            "down_vhosts": _connected_after(view, outage) if outage is not None else [],
        },
        evidence=(
            Evidence(
                key="refused",
                value=refused.count,
                source=source("/api/auth/attempts/<node>", "auth_attempts_succeeded")
                + source("/api/overview", "churn_rates.connection_created", "churn_rates.connection_closed"),
            ),
        ),
        certainty=Certainty.CERTAIN,
        seen_seconds=refused.seconds,
    )
