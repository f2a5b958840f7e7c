"""partition-handling-ignore (E14): the cluster does nothing about a partition.

The setting is not in the management API. What it does can be seen, once there is a partition: with `autoheal` or
`pause_minority` it is over, or one side is down, within seconds; one that both sides sit out is `ignore`.
Source: https://www.rabbitmq.com/docs/partitions#automatic-handling
"""

from collections.abc import Iterator

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, InconclusiveReport, runbook
from diagnosis.contract import RuleResult, View
from diagnosis.rules.cluster.metadata_minority import with_khepri
from diagnosis.rules.cluster.network_partition import split
from diagnosis.series import span
from diagnosis.words import lasting

NAME = "partition-handling-ignore"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield a finding while a partition stays, and what cannot be told before there is one."""
    if len(view.nodes) < 2 or with_khepri(view) is not False:
        return
    seen = split(view)
    if seen and span(seen) >= view.thresholds.cluster.partition_kept:
        yield FindingReport(
            rule=NAME,
            severity=Severity.INFO,
            subject=Subject(kind="cluster", name=view.window.cluster),
            since=seen[0].at.iso(),
            summary=f"Nobody heals the partition: it lasts for {lasting(span(seen))} or more",
            cause=(
                "cluster_partition_handling is `ignore`, its default: both sides go on until somebody restarts one "
                "(unless it is `autoheal`, and the node that it restarts is slow to stop)."
            ),
            evidence=(
                EvidenceReport(
                    what="partition",
                    value=f"still there after {lasting(span(seen))}",
                    expected="healed within seconds by autoheal or pause_minority",
                    source="/api/nodes partitions",
                ),
            ),
            next_steps=(
                "see the setting: rabbitmqctl environment | grep cluster_partition_handling",
                "heal this one by hand first (network-partition says how)",
                (
                    "then set cluster_partition_handling = pause_minority (three nodes or more) or autoheal in "
                    "rabbitmq.conf of every node, and restart them one by one"
                ),
            ),
            runbook=runbook(NAME),
        )
    elif not seen:
        yield InconclusiveReport(
            rule=NAME,
            because="the management API does not tell cluster_partition_handling; its default is ignore",
            needs="look by hand: rabbitmqctl environment | grep cluster_partition_handling",
            permanent=True,
        )
