"""partition-handling-ignore (E14): the cluster does not heal a partition by itself.

The setting is not in the management API. Its effect can be seen once there is a partition: with `autoheal` or
`pause_minority` it is over, or one side is down, within seconds; one that stays means `ignore`.
Source: https://www.rabbitmq.com/docs/partitions#automatic-handling
"""

from collections.abc import Iterator

from ackscope.findings import Evidence, Finding, Inconclusive, Severity, Unit, source
from diagnosis.contract import RuleResult, View
from diagnosis.rules.cluster._shared.cluster_state import partitioned, uses_khepri
from diagnosis.rules.nodes._shared.node_history import cluster_subject
from diagnosis.series import span

NAME = "partition-handling-ignore"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield a finding while a partition lasts; inconclusive before there is one."""
    if len(view.nodes) < 2 or uses_khepri(view) is not False:
        return
    seen = partitioned(view)
    if seen and span(seen) >= view.thresholds.cluster.partition_kept:
        yield Finding(
            rule=NAME,
            severity=Severity.INFO,
            subject=cluster_subject(view),
            since=seen[0].at.iso(),
            seen_seconds=span(seen),
            evidence=(
                Evidence(
                    key="partition", value=span(seen), unit=Unit.SECONDS, source=source("/api/nodes", "partitions")
                ),
            ),
        )
    elif not seen:
        yield Inconclusive(rule=NAME, reason="setting_unknown", permanent=True)
