"""classic-queue-node-down (C11): classic queues are away, for the node that holds them is.

A classic queue lives on one node. Its clients get 404; what is published to it by way of an exchange is nacked, or lost
without a word where the publisher uses no confirms. One finding a node, however many queues it holds.
Source: https://www.rabbitmq.com/docs/classic-queues, https://www.rabbitmq.com/docs/clustering
"""

from collections.abc import Iterator
from shlex import quote

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Node, Queue
from diagnosis.contract import RuleResult, View
from diagnosis.series import span, stretch
from diagnosis.window import Seen
from diagnosis.words import amount, lasting, some

NAME = "classic-queue-node-down"

AWAY = ("down", "stopped")
"""States of a queue whose process cannot be reached: its node crashed, or was stopped in order."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Collect the classic queues that are away, by their node."""
    away: dict[str, list[Queue]] = {}
    for queue in view.all_queues:
        if queue.state in AWAY and queue.node and queue.type in ("classic", None):
            away.setdefault(queue.node, []).append(queue)
    for name, queues in sorted(away.items()):
        node = view.node(name)
        lost = node is not None and node.running is False
        seconds = max(span(stretch(view.history(queue), _both_away)) for queue in queues[:20])
        if not lost and seconds < view.thresholds.queues.node_down_for:
            continue
        severity = Severity.CRITICAL if any(queue.durable is not False for queue in queues) else Severity.WARNING
        yield _finding(view, name, node, queues, severity, seconds)


def _both_away(older: Seen[Queue], newer: Seen[Queue]) -> bool:
    return older.value.state in AWAY and newer.value.state in AWAY


def _finding(
    view: View, name: str, node: Node | None, queues: list[Queue], severity: Severity, seconds: float
) -> FindingReport:
    names = some(sorted(f"{queue.name!r} ({queue.vhost!r})" for queue in queues))
    down = node is not None and node.running is False
    states = some(sorted({queue.state or "" for queue in queues}))
    since = min(stretch(view.history(queue), _both_away)[0].at.iso() for queue in queues[:20])
    if down:
        cause = f"Node {name!r} does not run, and a classic queue has no copy on another node."
    elif node is None:
        cause = f"Node {name!r} is not a member of the cluster any more, and a classic queue has no copy elsewhere."
    else:
        cause = f"Node {name!r} runs, but the processes of these queues do not: perhaps their virtual host is stopped."
    return FindingReport(
        rule=NAME,
        severity=severity,
        subject=Subject(kind="node", name=name, node=name),
        since=since,
        summary=(
            f"{amount(len(queues), 'classic queue')} on node {name!r} cannot be reached ({names}): publishes to them "
            f"are nacked, or lost without confirms; consumers get 404; seen for {lasting(seconds)}"
        ),
        cause=cause,
        evidence=(
            EvidenceReport(
                what="queues away",
                value=f"{len(queues)} in state {states}: {names}",
                expected="running",
                source="/api/queues state, node",
            ),
            EvidenceReport(
                what=f"node {name}",
                value="not running" if down else "not listed" if node is None else "running",
                expected="running",
                source="/api/nodes running",
            ),
        ),
        next_steps=_steps(name, queues, down=down),
        runbook=runbook(NAME),
    )


def _steps(name: str, queues: list[Queue], *, down: bool) -> tuple[str, ...]:
    if down:
        first = f"start the node again (its service, or rabbitmqctl -n {quote(name)} start_app): its messages come back"
    else:
        restart = f"rabbitmqctl restart_vhost -p {quote(queues[0].vhost)}"
        first = f"read the node's log, then start the virtual host again: {restart}"
    return (
        first,
        "do not delete these queues: what they hold would be gone",
        "publish again what was nacked; what was published without confirms meanwhile is lost",
        (
            f"only if the node is gone for good (its classic queues and their messages are lost): "
            f"rabbitmqctl forget_cluster_node {quote(name)}"
        ),
        "later: quorum queues, which go on with a majority of their nodes",
    )
