"""pub-sync-confirm (A10): a publisher waits for the confirm of each message before it sends the next one.

It can publish at most one message per confirm latency, however idle the broker is. This is a hint, reported only if the
probes find confirms slow, so that waiting matters.
Source: https://www.rabbitmq.com/docs/publishers#publisher-confirm-strategies
"""

from collections.abc import Iterator

from ackscope.findings import Evidence, Finding, Severity, Subject, Unit, source
from diagnosis.contract import RuleResult, View
from diagnosis.rules.publishers._shared.publishers import (
    ActivePublisher,
    by_vhost,
    clients,
    first_seen,
    involved_publishers,
    publishers,
)

NAME = "pub-sync-confirm"

# Streams of the confirm probe whose messages are persistent.
_STREAMS = ("classic", "quorum")


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each virtual host with such publishers; none without probes, which measure the latency."""
    limits = view.thresholds.publishers
    slowest: dict[str, float] = {}
    for outcome in view.outcomes_of("confirm"):
        latency = outcome.confirm.p50 or 0.0
        if outcome.stream in _STREAMS and outcome.doubtful is None and latency >= limits.sync_latency:
            slowest[outcome.node] = max(slowest.get(outcome.node, 0.0), latency)
    if not slowest:
        return
    latencies = {channel.name: slowest.get(channel.node or "", 0.0) for channel in view.channels}
    waiting = [
        each
        for each in publishers(view)
        if each.channel.confirm
        and _one_at_a_time(each)
        and each.rate * latencies[each.channel.name] >= limits.sync_share
    ]
    for vhost, group in by_vhost(waiting).items():
        yield _finding(vhost, group, max(latencies[each.channel.name] for each in group))


def _one_at_a_time(each: ActivePublisher) -> bool:
    """Return whether the publisher never had more than one unconfirmed message."""
    known = [seen.value.messages_unconfirmed for seen in each.history]
    return len(known) > 1 and all(number is not None and number <= 1 for number in known)


def _finding(vhost: str, group: list[ActivePublisher], latency: float) -> Finding:
    return Finding(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="vhost", name=vhost),
        since=first_seen(group),
        facts={
            "clients": clients(group),
            "confirm_seconds": latency,
            "max_publish_rate": 1 / latency,
        },
        evidence=tuple(
            Evidence(
                key="publisher",
                value=each.rate,
                unit=Unit.PER_SECOND,
                source=source("/api/channels", "messages_unconfirmed", "message_stats.publish")
                + source("probe confirm", "confirm"),
                facts={"publisher": each.facts()},
            )
            for each in group[:3]
        ),
        involved=involved_publishers(group),
        seen_seconds=max(each.seconds for each in group),
    )
