"""disk-alarm (D02): a node has less free disk than its limit, and the broker blocks every publisher of the cluster.

Source: https://www.rabbitmq.com/docs/disk-alarms
"""

from collections.abc import Iterator

from ackscope.findings import Severity
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes import alarm
from diagnosis.rules.nodes.seen import of_cluster, of_node, on
from diagnosis.words import amount, size

NAME = "disk-alarm"
_WORDS = "low on disk"
_DISK = alarm.Resource(
    rule=NAME,
    name="disk",
    field="/api/nodes disk_free_alarm",
    in_alarm=lambda node: node.disk_free_alarm,
    words=(_WORDS, "& disk"),
)


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each node with a disk alarm."""
    yield from alarm.judge(view, _DISK, _finding)


def _finding(view: View, name: str | None, source: str) -> FindingReport:
    node = view.node(name)
    evidence = [EvidenceReport(what="disk alarm", value="in force", expected="none", source=source)]
    raised = False
    if node is not None and node.disk_free is not None and node.disk_free_limit is not None:
        raised = node.disk_free > 20 * 2**30 and node.disk_free < node.disk_free_limit
        late = "" if node.disk_free <= node.disk_free_limit else " (a figure that is some seconds behind the alarm)"
        evidence.append(
            EvidenceReport(
                what=f"free disk{late}",
                value=size(node.disk_free),
                expected=f"above {size(node.disk_free_limit)}",
                source="/api/nodes disk_free, disk_free_limit",
            )
        )
    evidence += [*alarm.who_is_held(view, _WORDS), *_largest(view, name)]
    blocked = alarm.blocked_count(view)
    count = f", {amount(blocked, 'connection')} by now" if blocked else ""
    subject = of_node(name) if name else of_cluster(view)
    doubt = " There is much free disk all the same: perhaps the limit is set too high." if raised else ""
    return FindingReport(
        rule=NAME,
        severity=Severity.CRITICAL,
        subject=subject,
        since=alarm.since(view, name, "disk"),
        summary=f"Disk alarm on {subject}: every publisher of the cluster is held back{count}",
        cause=(
            "Less disk is free where the node keeps its data than its limit asks for; until there is more, the broker "
            "stops reading from every connection that publishes." + doubt
        ),
        evidence=tuple(evidence),
        next_steps=_steps(name),
        runbook=runbook(NAME),
    )


def _largest(view: View, node: str | None) -> list[EvidenceReport]:
    """The queues that hold the most bytes on the node; a quorum queue has them on each of its members."""
    here = [queue for queue in view.queues if queue.message_bytes and (node is None or node in _places(queue))]
    here.sort(key=lambda queue: (-(queue.message_bytes or 0), queue.key))
    return [
        EvidenceReport(
            what=f"queue {queue.name!r} in vhost {queue.vhost!r}",
            value=f"{size(queue.message_bytes or 0)} in {amount(queue.messages or 0, 'message')}",
            source="/api/queues message_bytes, messages",
        )
        for queue in here[:3]
    ]


def _places(queue: Queue) -> tuple[str | None, ...]:
    return queue.members or (queue.leader or queue.node,)


def _steps(name: str | None) -> tuple[str, ...]:
    target = on(name)
    lower = f"rabbitmqctl {target}set_disk_free_limit 1GB"
    where = f"rabbitmq-diagnostics {target}status   # its section 'Data directory', then: df -h, du -xsh *"
    return (
        f"see which disk it is and what fills it: {where}",
        "free what is not the broker's: old logs, crash dumps, package caches; never files in the data directory",
        "drain the largest queues: scale their consumers, or purge: rabbitmqctl purge_queue -p VHOST QUEUE",
        "extend the volume; the alarm ends by itself within seconds",
        f"see the limit: rabbitmq-diagnostics {target}environment | grep disk_free_limit",
        f"last resort, lower the limit: {lower}   # until restart; a full disk ends the node",
    )
