"""queue-limit-reached (X13): a virtual host has as many queues as its limit allows, or nearly.

A declare above the limit is refused: 406 "cannot declare queue 'Q': queue limit in vhost 'V' (N) is reached".
Source: https://www.rabbitmq.com/docs/vhosts#limits
"""

from collections.abc import Hashable, Iterable, Iterator

from ackscope.findings import (
    Certainty,
    Evidence,
    Fact,
    Finding,
    Inconclusive,
    Involved,
    Severity,
    Subject,
    Suppressed,
    source,
)
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.rules.clients._shared.limits import raised_limits
from diagnosis.rules.clients._shared.loops import subject_key
from diagnosis.rules.clients._shared.queue_limits import QueueLimitUse, queue_limits
from diagnosis.rules.queues._shared.queue import MAX_NAMED

NAME = "queue-limit-reached"

_GROWN, _GROWN_SECONDS = 2, 60.0
"""Queues more, within at least this time, that count as growth."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Compare every limit of queues with the queues of its virtual host."""
    for use in queue_limits(view):
        limit = use.limit
        if use.used is None:
            yield Inconclusive(rule=NAME, reason="queues_hidden", facts={"vhost": limit.subject, "limit": limit.value})
        elif limit.value == 0 and not use.used and not use.refuses:
            yield Suppressed(rule=NAME, subject=_subject(use), reason="closed_on_purpose")
        elif use.used >= view.thresholds.clients.limit_share * limit.value:
            yield _finding(view, use, use.used)


def _subject(use: QueueLimitUse) -> Subject:
    return Subject(kind="vhost", name=use.limit.subject, vhost=use.limit.subject)


def _until_full(use: QueueLimitUse, used: int) -> float | None:
    """Return the seconds until the limit at the present growth; None without growth."""
    if use.full or use.growth < _GROWN or use.growth_seconds < _GROWN_SECONDS:
        return None
    return (use.limit.value - used) * use.growth_seconds / use.growth


def _finding(view: View, use: QueueLimitUse, used: int) -> Finding:
    limit, limits = use.limit, view.thresholds.clients
    until_full = _until_full(use, used)
    soon = until_full is not None and until_full <= limits.queue_limit_within
    since = min((each for each in (*use.loops, use.unlisted) if each), key=lambda each: each.since.mono, default=None)
    clients: list[Fact] = [
        {
            "client": loop.client,
            "peer": loop.peer,
            "user": loop.connection.user,
            "cycle_rate": loop.rate,
            "reconnects": loop.whole,
        }
        for loop in use.loops
    ]
    evidence = [
        Evidence(key="used", value=used, source=source("/api/vhost-limits", "value") + source("/api/queues", "vhost"))
    ]
    if use.refuses:
        evidence.append(
            Evidence(
                key="refused",
                source=source("/api/overview", "churn_rates.queue_declared", "churn_rates.queue_created")
                + source("/api/connections", "send_oct", "recv_oct"),
            )
        )
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if use.full or soon else Severity.INFO,
        subject=_subject(use),
        since=since.since.iso() if since else None,
        facts={
            "vhost": limit.subject,
            "limit": limit.value,
            "used": used,
            "full": use.full,
            "clients": clients[:MAX_NAMED],
            "client_count": len(clients),
            "refused_seconds": since.lasts if since else None,
            "unlisted_rate": use.unlisted.rate if use.unlisted else None,
            "growth": use.growth,
            "growth_seconds": use.growth_seconds,
            "until_full_seconds": until_full,
            "near_share": limits.limit_share,
            "warning_within_seconds": limits.queue_limit_within,
            "raised_limits": raised_limits(view, limit, max(2 * limit.value, used + 10)),
        },
        evidence=tuple(evidence),
        involved=_involved(use),
        certainty=Certainty.CERTAIN,
        seen_seconds=since.lasts if since else None,
    )


def _involved(use: QueueLimitUse) -> Involved:
    loops = use.loops[:MAX_NAMED]
    return Involved(
        connections=tuple(sorted({loop.connection.name for loop in loops if not loop.whole})),
        clients=tuple(sorted({loop.connection.client_name for loop in loops if loop.connection.client_name})),
    )


def _loops_of(view: View, finding: Finding) -> Iterable[Hashable]:
    for use in queue_limits(view):
        if use.limit.subject == finding.subject.name:
            yield from (subject_key(loop.subject) for loop in use.loops)
            if use.unlisted is not None:
                yield subject_key(Subject(kind="cluster", name=view.window.cluster))


def _subject_of(_view: View, finding: Finding) -> Iterable[Hashable]:
    return (subject_key(finding.subject),)


LOOPS_REFUSED_HERE = Relation(_loops_of, _subject_of)
"""The cause is a limit; the consequence is about a client that runs into it, or about connections too brief to list."""
