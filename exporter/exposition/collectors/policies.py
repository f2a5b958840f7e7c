"""Policies, and how many queues and exchanges each of them applies to (`/api/policies`)."""

from collections import Counter
from collections.abc import Sequence

from prometheus_client.core import Metric

from ackscope.snapshot import Snapshot
from ackscope.topology import Policy
from exporter.exposition.cardinality.selection import Selection
from exporter.exposition.collectors.contract import Collector
from exporter.exposition.specs import MetricFamilies, gauge

_LABELS = ("cluster", "vhost", "policy", "kind")
_API = "/api/policies, /api/operator-policies"

INFO = gauge(
    "ackscope_policy_info",
    "Policy (kind: policy, operator), its pattern and what it applies to; always 1.",
    f"{_API} pattern, apply-to",
    *_LABELS,
    "apply_to",
    "pattern",
)
PRIORITY = gauge(
    "ackscope_policy_priority",
    "Priority; if several policies match, only the one with the highest priority takes effect.",
    f"{_API} priority",
    *_LABELS,
)
QUEUES = gauge(
    "ackscope_policy_queues",
    "Queues and streams on which the policy is in effect; 0 means that it matches nothing or is always "
    "overridden. No sample while some queues have not been read in full, and for operator policies, "
    "which queues do not report.",
    "/api/queues policy",
    *_LABELS,
)
EXCHANGES = gauge(
    "ackscope_policy_exchanges",
    "Exchanges on which the policy is in effect.",
    "/api/exchanges policy",
    *_LABELS,
)

SPECS = (INFO, PRIORITY, QUEUES, EXCHANGES)


def collect(snapshots: Sequence[Snapshot], selection: Selection) -> list[Metric]:
    """Metric families of all clusters."""
    families = MetricFamilies(SPECS)
    for snapshot in snapshots:
        policies = selection.of(snapshot.cluster).policies.shown
        if not policies:
            continue
        queues, exchanges = _queues(snapshot), _exchanges(snapshot)
        for policy in policies:
            labels = _labels(snapshot.cluster, policy)
            what = {"apply_to": policy.apply_to or "", "pattern": policy.pattern or ""}
            families.add(INFO, {**labels, **what}, 1)
            families.add(PRIORITY, labels, policy.priority)
            key = (policy.vhost, policy.name)
            if not policy.operator:
                families.add(QUEUES, labels, None if queues is None else queues[key])
                families.add(EXCHANGES, labels, None if exchanges is None else exchanges[key])
    return families.result()


def _labels(cluster: str, policy: Policy) -> dict[str, str]:
    kind = "operator" if policy.operator else "policy"
    return {"cluster": cluster, "vhost": policy.vhost, "policy": policy.name, "kind": kind}


def _queues(snapshot: Snapshot) -> Counter[tuple[str, str]] | None:
    queues = snapshot.queues.value
    # A queue with totals only reports neither consumers nor policy, so it may have a policy.
    if queues is None or any(queue.consumers is None for queue in queues):
        return None
    return Counter((queue.vhost, queue.policy) for queue in queues if queue.policy)


def _exchanges(snapshot: Snapshot) -> Counter[tuple[str, str]] | None:
    if snapshot.exchanges.value is None:
        return None
    return Counter((exchange.vhost, exchange.policy) for exchange in snapshot.exchanges.value if exchange.policy)


COLLECTOR = Collector(SPECS, collect)
