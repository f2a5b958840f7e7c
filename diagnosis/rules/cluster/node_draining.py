"""node-draining (E11): a node is in maintenance: it takes no clients and leads no queues, on purpose.

Information, so that what follows from it is understood; a warning where it was forgotten.
"""

from collections.abc import Iterator

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Node
from diagnosis.contract import RuleResult, View
from diagnosis.rules.cluster.standing import tail
from diagnosis.series import span
from diagnosis.window import Series
from diagnosis.words import lasting

NAME = "node-draining"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each node in maintenance."""
    for node in sorted(view.nodes, key=lambda node: node.name):
        if node.being_drained:
            yield _finding(view, node)


def _drained(view: View, name: str) -> Series[Node]:
    """Since when it is in maintenance, as far back as is remembered."""
    recent = tail(view.node_history(name), lambda node: bool(node.being_drained))
    long = tail(view.node_trend(name), lambda node: bool(node.being_drained))
    return long if span(long) > span(recent) else recent


def _finding(view: View, node: Node) -> FindingReport:
    name, drained = node.name, _drained(view, node.name)
    seconds = span(drained)
    forgotten = seconds >= view.thresholds.cluster.draining_for
    state = "running" if node.running else "stopped" if node.running is False else "not told"
    return FindingReport(
        rule=NAME,
        severity=Severity.WARNING if forgotten else Severity.INFO,
        subject=Subject(kind="node", name=name, node=name),
        since=drained[0].at.iso() if drained else None,
        summary=f"Node {name!r} is in maintenance, for {lasting(seconds)} or more: it takes no clients, leads no queues"
        + ("; was it forgotten?" if forgotten else "; that is on purpose"),
        cause="Somebody drained it (rabbitmq-upgrade drain): its listeners are closed and its leaders moved away.",
        evidence=(
            EvidenceReport(what="in maintenance", value="yes", expected="no", source="/api/nodes being_drained"),
            EvidenceReport(what="node", value=state, expected="running", source="/api/nodes running"),
        ),
        next_steps=(
            "ask who works on it; an upgrade ends with a restart, which ends maintenance too",
            f"when the work is done and it was not restarted: rabbitmq-upgrade -n {name} revive",
            'then spread the leaders again: rabbitmq-queues rebalance all --vhost-pattern ".*" --queue-pattern ".*"',
        ),
        runbook=runbook(NAME),
    )
