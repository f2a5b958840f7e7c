"""channel-churn (X02): a connection stays open, and its channels open and close in a loop.

Either the client closes each channel after one operation, which wastes work on both sides, or the broker closes each
channel with an error and the client tries again. Known errors have rules of their own (a missing exchange, a
refused permission, an unknown delivery tag, a declaration that differs); this rule reports the rest. A client that is
refused at a queue which serves as a lock waits on purpose: a warning only if it is fast.

Where the broker lists no clients, the channels of the whole cluster are counted. Many slow clients look the same there,
so the rate of a warning grows with the open connections.
Source: https://www.rabbitmq.com/docs/channels#high-channel-churn
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ackscope.findings import Certainty, Evidence, Finding, Severity, Subject, Unit, source
from ackscope.snapshot import Queue
from diagnosis.churn import ChurnRate, channel_churn_beside_connections
from diagnosis.churn_loops import ChurnLoop, churn_loops
from diagnosis.contract import RuleResult, View
from diagnosis.memo import per_view
from diagnosis.preconditions import unread
from diagnosis.rules.clients._shared.loops import FEW_MESSAGES, MIN_PER_CYCLE, loop_evidence, loop_facts, loop_involved
from diagnosis.rules.clients._shared.not_found import not_found
from diagnosis.rules.clients._shared.refusals import no_prefetch
from diagnosis.rules.clients._shared.refused_access import refused_access
from diagnosis.rules.consumers.exclusive_consumer_contention import lock_waiters
from diagnosis.rules.queues._shared.queue import MAX_NAMED, queue_refs
from diagnosis.thresholds.clients import ClientThresholds

NAME = "channel-churn"

_EACH = 0.01
"""Channels a second for each open connection that are many clients, each slow, and no loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Urgency:
    """How urgent a loop is.

    Attributes:
        warning_after: seconds after which it becomes a warning; None if its duration does not matter.
    """

    severity: Severity
    warning_after: float | None = None


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every connection whose channels open and close in a loop; the cluster where the broker lists none."""
    lacking = tuple(unread(NAME, view, ("connections", "channels")))
    if lacking:
        yield from lacking
        if view.lists_no_clients:
            yield from _of_cluster(view)
        return
    limits, waiting = view.thresholds.clients, per_view(view, lock_waiters)
    for closing in churn_loops(view):
        if closing.whole or closing.lasts < view.thresholds.early:
            continue
        if closing.by_broker is not True and closing.rate < limits.channel_churn_slow:
            continue
        yield _finding(view, closing, limits, waits=closing.connection.name in waiting)


def _urgency(closing: ChurnLoop, limits: ClientThresholds, *, waits: bool) -> Urgency:
    if closing.by_broker and not waits:
        after = limits.refused_for
    elif closing.rate >= limits.channel_churn_fast:
        after = limits.channel_churn_for
    else:
        return Urgency(severity=Severity.INFO)
    return Urgency(severity=Severity.WARNING if closing.lasts >= after else Severity.INFO, warning_after=after)


def _publishes(view: View, closing: ChurnLoop) -> bool:
    """Return whether the client was seen to publish; what the broker refuses counts nowhere."""
    return (closing.alone and closing.published >= MIN_PER_CYCLE) or any(
        channel.connection_name == closing.connection.name and channel.stats.publish
        for seen in view.window.readings("channels")
        for channel in seen.value
    )


def _streams(view: View, closing: ChurnLoop) -> list[Queue]:
    """Return the streams whose refusal of a consumer without a prefetch is as long as the error."""
    if not closing.by_broker or (closing.alone and max(closing.published, closing.declares) >= FEW_MESSAGES):
        return []
    vhost = closing.connection.vhost or "/"
    streams = (queue for queue in view.all_queues if queue.vhost == vhost and queue.type == "stream")
    found = [queue for queue in streams if closing.said(no_prefetch(view, queue.name, vhost))]
    return [queue for queue in found if not queue.consumers] or found


def _finding(view: View, closing: ChurnLoop, limits: ClientThresholds, *, waits: bool) -> Finding:
    streams, missing = _streams(view, closing), not_found(view, closing)
    urgency = _urgency(closing, limits, waits=waits)
    early = urgency.severity is Severity.INFO and urgency.warning_after is not None
    return Finding(
        rule=NAME,
        severity=urgency.severity,
        subject=closing.subject,
        since=closing.since.iso(),
        facts={
            **loop_facts(closing),
            "publishes": _publishes(view, closing),
            "warning_after_seconds": urgency.warning_after,
            "warning_rate": limits.channel_churn_fast,
            "refusals": [each.facts() for each in refused_access(view, closing)],
            "not_found": missing.facts() if missing else None,
            "streams": [queue.name for queue in streams[:MAX_NAMED]],
        },
        evidence=tuple(loop_evidence(closing, "channel")),
        involved=replace(loop_involved(closing), queues=queue_refs(streams)),
        certainty=Certainty.EARLY if early else Certainty.LIKELY,
        seen_seconds=closing.lasts,
    )


def _of_cluster(view: View) -> Iterator[Finding]:
    limits, total = view.thresholds.clients, channel_churn_beside_connections(view)
    connections = (view.overview.connections if view.overview else None) or 1
    if total is None or total.lasts < view.thresholds.early:
        return
    if total.rate < max(limits.channel_churn_slow, _EACH * connections):
        return
    fastest = max(limits.channel_churn_fast, limits.connection_churn_share * connections)
    urgency = Urgency(severity=Severity.INFO)
    if total.rate >= fastest:
        late = total.lasts >= limits.channel_churn_for
        urgency = Urgency(severity=Severity.WARNING if late else Severity.INFO, warning_after=limits.channel_churn_for)
    yield _cluster_finding(view, total, urgency, fastest)


def _cluster_finding(view: View, total: ChurnRate, urgency: Urgency, fastest: float) -> Finding:
    early = urgency.severity is Severity.INFO and urgency.warning_after is not None
    return Finding(
        rule=NAME,
        severity=urgency.severity,
        subject=Subject(kind="cluster", name=view.window.cluster),
        since=total.since.iso(),
        facts={
            "client": None,
            "peer": "",
            "user": None,
            "vhost": None,
            "node": None,
            "connection": None,
            "cycle_rate": total.rate,
            "by_broker": None,
            "activities": [],
            "publishes": False,
            "warning_after_seconds": urgency.warning_after,
            "warning_rate": fastest,
            "refusals": [],
            "not_found": None,
            "streams": [],
        },
        evidence=(
            Evidence(
                key="loop_rate",
                value=total.rate,
                unit=Unit.PER_SECOND,
                source=source("/metrics", "rabbitmq_channels_opened_total", "rabbitmq_channels_closed_total"),
                facts={"what": "channel", "seen_seconds": total.lasts},
            ),
        ),
        certainty=Certainty.EARLY if early else Certainty.LIKELY,
        seen_seconds=total.lasts,
    )
