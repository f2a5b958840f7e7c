"""pub-no-confirms (A04): channels publish without confirms, so that a loss would never be noticed.

Nothing is wrong until a node dies or a channel is closed; then what was in flight is gone, and nobody knows what it
was. Source: https://www.rabbitmq.com/docs/confirms, https://www.rabbitmq.com/docs/publishers#data-safety
"""

from collections.abc import Iterator
from shlex import quote

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from diagnosis.contract import RuleResult, View
from diagnosis.rules.publishers.publishing import Publisher, by_vhost, gained, listed, named, pace, publishers
from diagnosis.rules.publishers.unroutable import DROPPED
from diagnosis.words import amount, lasting, some

NAME = "pub-no-confirms"


def evaluate(view: View) -> Iterator[RuleResult]:
    """One finding for each virtual host that keeps messages and has such publishers."""
    # The mode of a channel shows some 5 s after it was opened, so a single reading proves nothing.
    least = view.thresholds.publishers.no_confirms_least
    blind = [
        each
        for each in publishers(view)
        if each.channel.confirm is False
        and each.channel.transactional is False
        and (each.channel.stats.publish or 0) >= least
        and each.published > gained(view, each.lately, DROPPED)
        and each.seconds >= min(view.thresholds.early, view.thresholds.interval)
    ]
    if not blind:
        return
    # Where nothing is to survive a restart, a telemetry publisher does well without.
    keeping = {queue.vhost for queue in view.all_queues if queue.durable and not queue.exclusive}
    down = sorted(node.name for node in view.nodes if node.running is False and not node.being_drained)
    for vhost, group in by_vhost(blind).items():
        if vhost in keeping:
            yield _finding(vhost, group, down)


def _finding(vhost: str, group: list[Publisher], down: list[str]) -> FindingReport:
    rate = sum(each.rate for each in group)
    now = (
        f"; {some(down)} is down, and what was on its way there is lost without a trace"
        if down
        else ": a node that dies or a channel that is closed would lose messages unnoticed"
    )
    verb = "publishes" if len(group) == 1 else "publish"
    return FindingReport(
        rule=NAME,
        severity=Severity.WARNING if down else Severity.INFO,
        subject=Subject(kind="vhost", name=vhost),
        since=min(each.lately[0].at.iso() for each in group),
        summary=(
            f"{amount(len(group), 'channel')} in vhost {vhost!r} {verb} {pace(rate)} without confirms "
            f"({named(group)}){now}"
        ),
        cause="These channels are neither in confirm mode nor transactional: the broker never tells them what it took.",
        evidence=tuple(
            EvidenceReport(
                what=f"publisher {each.name!r}, channel {each.channel.name!r}",
                value=f"{amount(each.published, 'message')} in {lasting(each.seconds)}, confirm mode off",
                expected="confirm mode on",
                source="/api/channels confirm, transactional, message_stats.publish",
            )
            for each in sorted(group, key=lambda each: (-each.published, each.channel.name))[:3]
        ),
        next_steps=(
            f"ask the owners whether these messages may be lost: {listed(group)}",
            "if not: confirm.select on the channel, and keep each message until its ack; publish again after a nack",
            f"see all of them: rabbitmqctl list_channels -p {quote(vhost)} connection name confirm transactional",
        ),
        runbook=runbook(NAME),
    )
