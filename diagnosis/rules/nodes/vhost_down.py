"""vhost-down (D13): a virtual host does not run on a node; its queues there are gone and nobody can connect to it.

One that falls over once is started again by itself; one whose store cannot be read stays down.
Source: https://www.rabbitmq.com/docs/vhosts#failure-handling
"""

import shlex
from collections.abc import Iterator

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.topology import VHost
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes.seen import lasting, of_cluster, on
from diagnosis.series import span
from diagnosis.words import lasting as so_long
from diagnosis.words import some

NAME = "vhost-down"
_CHECK = "virtual-hosts"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every virtual host by its state on running nodes; the health check tells sooner, and not which."""
    down = {vhost.name: nodes for vhost in view.vhosts if (nodes := _stopped(view, vhost))}
    check = view.checks.get(_CHECK)
    failing = lasting(
        view.window.readings("health"), lambda checks: any(c.name == _CHECK and c.ok is False for c in checks)
    )
    for name, nodes in sorted(down.items()):
        # The list is read less often than the check, which may know of its end already.
        if check is None or check.ok is False:
            yield _finding(view, name, nodes, span(failing))
    listed = view.age("vhosts")
    # A list that is older than the failure names none yet: the next one will.
    named_soon = listed is not None and span(failing) < listed <= view.thresholds.data_age
    if not down and not named_soon and span(failing) >= view.thresholds.nodes.vhost_down_for:
        yield _finding(view, None, (), span(failing))


def _stopped(view: View, vhost: VHost) -> tuple[str, ...]:
    """Nodes where it does not run; on a node that is down nothing does, which is told of the node."""
    gone = {node.name for node in view.nodes if node.running is False}
    return tuple(sorted(node for node, state in vhost.cluster_state.items() if state != "running" and node not in gone))


def _finding(view: View, name: str | None, nodes: tuple[str, ...], seconds: float) -> FindingReport:
    first = next(
        iter(
            lasting(
                view.window.readings("health"), lambda checks: any(c.name == _CHECK and c.ok is False for c in checks)
            )
        ),
        None,
    )
    lasts = seconds >= view.thresholds.nodes.vhost_down_for
    subject = of_cluster(view) if name is None else Subject(kind="vhost", name=name, node=nodes[0] if nodes else None)
    where = f" on {some(nodes)}" if nodes else ""
    called = "A virtual host" if name is None else f"Virtual host {name!r}"
    wait = "" if lasts else f"; seen just now: it may start again by itself, critical after {_after(view)}"
    check = view.checks.get(_CHECK)
    evidence = [
        EvidenceReport(
            what=f"state on {node}",
            value="stopped",
            expected="running",
            source="/api/vhosts cluster_state",
        )
        for node in nodes[:3]
    ]
    if check is not None:
        evidence.append(
            EvidenceReport(
                what="health check",
                value=check.reason or ("ok" if check.ok else "failed"),
                expected="ok",
                source="/api/health/checks/virtual-hosts",
            )
        )
    return FindingReport(
        rule=NAME,
        severity=Severity.CRITICAL if lasts else Severity.INFO,
        subject=subject,
        since=first.at.iso() if first else None,
        summary=f"{called} is down{where}: its queues there are gone, and no client can connect to it{wait}",
        cause=(
            "The processes of the virtual host ended on that node and were not started again; mostly its message store "
            "or a queue's index could not be read."
        ),
        evidence=tuple(evidence),
        next_steps=_steps(name, nodes[0] if nodes else None),
        runbook=runbook(NAME),
    )


def _after(view: View) -> str:
    return so_long(view.thresholds.nodes.vhost_down_for)


def _steps(name: str | None, node: str | None) -> tuple[str, ...]:
    target, vhost = on(node), "VHOST" if name is None else shlex.quote(name)
    which = () if name else ("see which one: rabbitmqctl list_vhosts name cluster_state",)
    return (
        *which,
        f"see why it ended: rabbitmq-diagnostics {target}log_tail -N 500   # look for the virtual host's name",
        f"start it again: rabbitmqctl {target}restart_vhost -p {vhost}",
        "it does not start: its store is damaged; the log names the file. Copy the data directory before anything else",
        "a disk that is full or cannot be read: mend that first, then start it again",
    )
