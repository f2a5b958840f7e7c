"""pub-sync-confirm (A10): a publisher waits for the confirm of each message before it sends the next.

It can publish no more than one message a confirm latency, however idle the broker. A hint, and told only where the
probes find confirms to be slow, so that waiting costs something.
Source: https://www.rabbitmq.com/docs/publishers#publisher-confirm-strategies
"""

from collections.abc import Iterator

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from diagnosis.contract import RuleResult, View
from diagnosis.rules.publishers.publishing import Publisher, by_vhost, named, pace, publishers
from diagnosis.words import lasting

NAME = "pub-sync-confirm"

_PATHS = ("classic", "quorum")
"""Streams of the confirm probe that take the way of persistent messages."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """One finding for each virtual host with such publishers; none without probes, as latency is then not known."""
    limits = view.thresholds.publishers
    slowest: dict[str, float] = {}
    for outcome in view.outcomes_of("confirm"):
        latency = outcome.confirm.p50 or 0.0
        if outcome.stream in _PATHS and outcome.doubtful is None and latency >= limits.sync_latency:
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


def _one_at_a_time(each: Publisher) -> bool:
    """Whether never more than one message was open."""
    known = [seen.value.messages_unconfirmed for seen in each.lately]
    return len(known) > 1 and all(number is not None and number <= 1 for number in known)


def _finding(vhost: str, group: list[Publisher], latency: float) -> FindingReport:
    verb = "waits" if len(group) == 1 else "wait"
    return FindingReport(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="vhost", name=vhost),
        since=min(each.lately[0].at.iso() for each in group),
        summary=(
            f"{named(group)} in vhost {vhost!r} {verb} for each confirm, it seems: {1000 * latency:.0f} ms each allow "
            f"no more than {pace(1 / latency)} a channel"
        ),
        cause=(
            "Never more than one message was open at a time, and the rate is near one a confirm latency. Confirms are "
            "slow now (that is a finding of its own, if it is one), and a publisher with many open would hardly notice."
        ),
        evidence=tuple(
            EvidenceReport(
                what=f"publisher {each.name!r}, channel {each.channel.name!r}",
                value=f"{pace(each.rate)} over {lasting(each.seconds)}, at most 1 unconfirmed",
                expected="some hundred unconfirmed under load",
                source="/api/channels messages_unconfirmed, message_stats.publish; probe: confirm",
            )
            for each in group[:3]
        ),
        next_steps=(
            "let the publisher send on while confirms come in (asynchronous), or wait once for each hundred",
            "see why confirms are slow: the probes' latency by queue type, iostat -x 5 on the node",
        ),
        runbook=runbook(NAME),
    )
