"""hot-queue (C08): one queue carries most of the traffic, and a queue is one process: it runs on one core.

Only told where that limit is felt: somebody waits for the queue (flow), or its consumers could hold more than it hands
out while messages wait.
Source: https://www.rabbitmq.com/docs/queues#runtime-characteristics
"""

from collections.abc import Iterator

from ackscope.findings import Severity
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.hold_time import may_hold
from diagnosis.rules.queues.balance import all_along
from diagnosis.rules.queues.telling import about, named, so_far
from diagnosis.series import delta, last, span
from diagnosis.window import Series
from diagnosis.words import client, lasting, some

NAME = "hot-queue"

WORK = ("publish", "deliver_get")
FLOW = "flow"
LEAST_READINGS = 3


def evaluate(view: View) -> Iterator[RuleResult]:
    """Find the queue that carries most, and whether it is at its limit."""
    busy = [queue for queue in view.queues if queue.type != "stream" and view.moved(queue, "publish")]
    if not busy:
        return
    interval = view.thresholds.interval
    work = {queue.key: delta(last(view.history(queue), interval), *WORK) for queue in busy}
    total = sum(work.values())
    queue = max(busy, key=lambda each: (work[each.key], each.key))
    limits = view.limits(queue).queues
    if work[queue.key] <= limits.hot_share * total:
        return
    lately = _hot(view.history(queue), interval, limits.hot_rate)
    if span(lately) < view.thresholds.early:
        return
    felt = _felt(view, queue)
    if felt:
        yield _finding(view, queue, lately, work[queue.key] / max(total, 1), felt)


def _hot(history: Series[Queue], interval: float, rate: float) -> Series[Queue]:
    """The time until now in which it carried so much in each interval."""
    return all_along(history, interval, lambda pair: delta(pair, *WORK) >= rate * span(pair))


def _felt(view: View, queue: Queue) -> list[str]:
    """Signs that the queue is the limit, in words."""
    signs = []
    if queue.state == FLOW:
        signs.append("the queue itself is in flow")
    slowed = _throttled(view, queue.vhost)
    if slowed:
        signs.append(f"publishers are held back (flow): {some(repr(name) for name in slowed)}")
    allowed = may_hold(view, queue)
    unacked, ready = queue.messages_unacked, queue.messages_ready
    if allowed and unacked is not None and unacked < 0.5 * allowed and (ready or 0) > allowed:
        signs.append(f"{ready} messages wait while consumers hold {unacked} of the {allowed} that they may")
    return signs


def _throttled(view: View, vhost: str) -> list[str]:
    """Clients of a virtual host whose publishing channels were in flow at half of the last readings."""
    found = set()
    for channel in view.channels:
        if channel.vhost != vhost or not channel.stats.publish:
            continue
        states = [seen.value.state == FLOW for seen in view.channel_history(channel.name)]
        if len(states) >= LEAST_READINGS and sum(states) * 2 >= len(states):
            found.add(client(view.connection(channel.connection_name), channel.connection_name))
    return sorted(found)


def _finding(view: View, queue: Queue, lately: Series[Queue], share: float, felt: list[str]) -> FindingReport:
    limits, seconds = view.limits(queue).queues, span(lately)
    severity = Severity.WARNING if seconds >= limits.hot_for else Severity.INFO
    rate = delta(lately, *WORK) / seconds
    node = queue.leader or queue.node
    return FindingReport(
        rule=NAME,
        severity=severity,
        subject=about(queue),
        since=lately[0].at.iso(),
        summary=(
            f"{share:.0%} of all messages go through {named(queue)}, {rate:.0f} a second in and out, and it is at its "
            f"limit; {so_far(severity, seconds, limits.hot_for, 'a burst')}"
        ),
        cause=f"A queue is one process and uses one core of {node or 'its node'}; {'; '.join(felt)}.",
        evidence=(
            EvidenceReport(
                what="published and delivered",
                value=f"{rate:.0f} a second over {lasting(seconds)}, {share:.0%} of the cluster's",
                expected="spread over several queues",
                source="/api/queues message_stats.publish, deliver_get",
            ),
            *(
                EvidenceReport(what="sign", value=sign, source="/api/queues state, messages_*; /api/channels state")
                for sign in felt
            ),
        ),
        next_steps=(
            "see that it is the queue: rabbitmq-diagnostics observer: its process has the most reductions",
            "spread the load: several queues behind a consistent-hash exchange, or by key; or a super stream",
            "win some room: larger prefetch, fewer and larger messages, confirms in batches",
            "a classic queue without need of copies carries more than a quorum queue",
        ),
        runbook=runbook(NAME),
    )
