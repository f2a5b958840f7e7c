"""pub-credit-flow (A06): publishers are slowed down, as they send faster than the broker takes.

Flow control by itself is normal, and asks for nothing; it is told where it does not stop, and urgent only where the
probes, which send little, wait too. Where it stops says what is slow: the channel, or the queues behind it.
Source: https://www.rabbitmq.com/docs/flow-control, https://www.rabbitmq.com/docs/connections#flow-control
"""

from collections.abc import Iterator

from ackscope.findings import Severity, Subject
from ackscope.records import ProbeOutcome
from ackscope.reports import EvidenceReport, FindingReport, runbook
from diagnosis.contract import RuleResult, View
from diagnosis.rules.publishers.publishing import Publisher, named, pace, publishers
from diagnosis.series import span
from diagnosis.words import amount, lasting, some

NAME = "pub-credit-flow"

FLOW = "flow"
_WHERE = (
    "rabbitmqctl list_connections name state; rabbitmqctl list_channels name state; rabbitmqctl list_queues name state"
)


def evaluate(view: View) -> Iterator[RuleResult]:
    """One finding for each node whose publishers are throttled all the time."""
    limits = view.thresholds.publishers
    by_node: dict[str, list[tuple[Publisher, bool]]] = {}
    for each in publishers(view):
        channel = each.channel
        # Idle in flow is no overload: a quorum queue without majority holds it (pub-confirm-stall).
        if channel.idle_since is not None or each.seconds < limits.flow_for:
            continue
        throttled = _share([seen.value.state == FLOW for seen in each.lately])
        history = view.connection_history(channel.connection_name or "")
        held = _share([seen.value.state == FLOW for seen in history])
        if max(throttled, held) >= limits.flow_share:
            by_node.setdefault(channel.node or "", []).append((each, throttled >= limits.flow_share))
    for node, group in sorted(by_node.items()):
        yield _finding(view, node, group)


def _share(states: list[bool]) -> float:
    return sum(states) / len(states) if len(states) >= 2 else 0.0


def _finding(view: View, node: str, group: list[tuple[Publisher, bool]]) -> FindingReport:
    throttled = [each for each, _ in group]
    slow = _slow_probes(view, node)
    rate = sum(each.rate for each in throttled)
    seconds = lasting(max(each.seconds for each in throttled))
    told = (
        f", and the probes wait {slow[0].confirm.p50 or 0:.2f} s for a confirm: others suffer too"
        if slow
        else "; by itself this is normal, and needs nothing while the rate is what it should be"
    )
    verb = "is" if len(throttled) == 1 else "are"
    return FindingReport(
        rule=NAME,
        severity=Severity.WARNING if slow else Severity.INFO,
        subject=Subject(kind="node", name=node, node=node)
        if node
        else Subject(kind="cluster", name=view.window.cluster),
        since=min(each.lately[0].at.iso() for each in throttled),
        summary=(
            f"{amount(len(throttled), 'publisher')} {verb} throttled by flow control for {seconds} or more, at "
            f"{pace(rate)} in all ({named(throttled)}){told}"
        ),
        cause=_cause(view, node, group),
        evidence=(*_evidence(throttled), *_of_probes(slow)),
        next_steps=(
            f"see where flow stops: {_WHERE}",
            "spread the load over more queues: one queue uses about one core",
            "see whether the node is short of CPU or disk: rabbitmq-diagnostics observer; iostat -x 5",
            "let the publisher wait for confirms, with some hundred messages open, and not for the socket",
        ),
        runbook=runbook(NAME),
    )


def _cause(view: View, node: str, group: list[tuple[Publisher, bool]]) -> str:
    queues = sorted(queue.name for queue in view.queues if queue.state == FLOW and queue.node == node)
    if queues:
        return f"Queues are throttled as well: {some(map(repr, queues))}: what is behind them is slow, the disk mostly."
    if any(by_queue for _, by_queue in group):
        return (
            "The channels are throttled and the queues are not: the queues take messages more slowly than they come "
            "(a quorum queue waits for its members and the disk)."
        )
    return "The connections are throttled and the channels are not: the channels have more to do than one core does."


def _slow_probes(view: View, node: str) -> list[ProbeOutcome]:
    limit = view.thresholds.publishers.flow_confirm
    slow = [
        each
        for each in view.outcomes_of("confirm")
        if each.doubtful is None and (each.confirm.p50 or 0.0) >= limit and (not node or each.node in {"", node})
    ]
    return sorted(slow, key=lambda each: (-(each.confirm.p50 or 0.0), each.stream))


def _evidence(throttled: list[Publisher]) -> Iterator[EvidenceReport]:
    for each in sorted(throttled, key=lambda each: (-each.rate, each.channel.name))[:3]:
        raft = each.channel.pending_raft_commands
        pending = f", {raft} commands wait for quorum queues" if raft else ""
        of = sum(seen.value.state == FLOW for seen in each.lately)
        yield EvidenceReport(
            what=f"publisher {each.name!r}, channel {each.channel.name!r}",
            value=(
                f"channel in flow in {of} of {len(each.lately)} readings over {lasting(span(each.lately))}, connection "
                f"{each.connection.state if each.connection else 'unknown'}, {pace(each.rate)}{pending}"
            ),
            expected="running",
            source="/api/channels state, pending_raft_commands, message_stats.publish; /api/connections state",
        )


def _of_probes(slow: list[ProbeOutcome]) -> Iterator[EvidenceReport]:
    for each in slow[:2]:
        yield EvidenceReport(
            what=f"probe confirm {each.stream}",
            value=f"median {each.confirm.p50 or 0:.3f} s",
            expected="some milliseconds",
            source="probe: confirm",
        )
