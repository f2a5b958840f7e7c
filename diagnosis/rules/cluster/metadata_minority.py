"""metadata-minority (E03): too few nodes are left for the metadata store (Khepri) to change anything.

Clients that are connected go on; whoever declares, binds or deletes waits 30 s and is then disconnected (541). The
broker's own health checks answer 200 all the while (seen on 4.3). Khepri is what every cluster has from 4.3 on, and
those before that have the feature flag `khepri_db`; Mnesia needs no majority.
Source: https://www.rabbitmq.com/docs/metadata-store/failure-recovery
"""

from collections.abc import Iterator

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, InconclusiveReport, runbook
from diagnosis.contract import RuleResult, View
from diagnosis.rules.cluster.standing import down, running, tail
from diagnosis.words import some

NAME = "metadata-minority"

FLAG = "khepri_db"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield a finding where half of the nodes or more do not run, and the metadata store needs a majority."""
    if len(view.nodes) < 2 or not down(view) or 2 * len(running(view)) > len(view.nodes):
        return
    needed = with_khepri(view)
    if needed is None:
        yield InconclusiveReport(
            rule=NAME,
            because="half of the nodes or more do not run, and it is not told whether this cluster keeps its metadata "
            "in Khepri, which then cannot change, or in Mnesia, which can",
            needs=f"see whether {FLAG} is enabled: rabbitmqctl list_feature_flags name state",
        )
    elif needed:
        yield _finding(view)


def with_khepri(view: View) -> bool | None:
    """Whether the cluster keeps its metadata in Khepri; None where that is not told."""
    if view.version is None:
        return None
    if view.version < (3, 13):
        return False
    if view.version >= (4, 3):
        return True
    flag = next((each for each in view.features if each.name == FLAG and not each.deprecated), None)
    if flag is not None:
        return flag.state == "enabled"
    return None


def _finding(view: View) -> FindingReport:
    up, count, stopped = running(view), len(view.nodes), sorted(down(view))
    lost = tail(
        view.window.readings("nodes"), lambda nodes: 2 * sum(bool(node.running) for node in nodes) <= len(nodes)
    )
    evidence = [
        EvidenceReport(
            what="nodes that run",
            value=f"{len(up)} of {count}: {some([node.name for node in up])}",
            expected=f"at least {count // 2 + 1}",
            source="/api/nodes running",
        )
    ]
    evidence.extend(
        EvidenceReport(
            what=f"probe {outcome.probe}", value=f"{name}: {step.reason}", expected="ok", source="probe: declare"
        )
        for outcome in view.outcomes
        for name, step in sorted(outcome.steps.items())
        if "declare" in name and step.reason
    )
    return FindingReport(
        rule=NAME,
        severity=Severity.CRITICAL,
        subject=Subject(kind="cluster", name=view.window.cluster),
        since=lost[0].at.iso() if lost else None,
        summary=f"Only {len(up)} of {count} nodes run: nothing can be declared, bound or deleted; who tries waits 30 s "
        "and is disconnected (541)",
        cause="The metadata store (Khepri) needs a majority of all nodes to change anything. Clients that are "
        "connected and use classic queues of the running nodes go on; new ones that declare what they need fail.",
        evidence=tuple(evidence[:4]),
        next_steps=(
            f"start the nodes that are away ({some(stopped)}): systemctl start rabbitmq-server on each",
            "do not restart the nodes that run, nor clients that still work: they could not come back",
            "do not trust the health checks meanwhile: they answer 200",
            (
                "only if a majority is gone for good, with a copy of the data folder, on one node that is left: "
                "rabbitmqctl "
                "help force_standalone_khepri_boot   # it forgets all other nodes"
            ),
        ),
        runbook=runbook(NAME),
    )
