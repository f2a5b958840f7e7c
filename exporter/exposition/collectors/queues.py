"""Selected queues and the remainder (`/api/queues`)."""

from collections.abc import Sequence

from prometheus_client.core import Metric

from ackscope.snapshot import Queue, Snapshot
from exporter.exposition.cardinality.emit import LabelScheme, emit
from exporter.exposition.cardinality.selection import OTHER, Selection
from exporter.exposition.collectors import queue_limits
from exporter.exposition.collectors.contract import Collector
from exporter.exposition.collectors.queue_specs import API, FIELD_METRICS, LABELS, READERS
from exporter.exposition.specs import MetricFamilies, gauge, untested_because

INFO = gauge(
    "ackscope_queue_info",
    "Type, node (of the leader) and effective policies of the queue; always 1.",
    f"{API} type, node, leader, policy, operator_policy",
    *LABELS,
    "queue_type",
    "node",
    "policy",
    "operator_policy",
)
NOT_RUNNING = untested_because(
    gauge(
        "ackscope_queue_not_running",
        "1 for each queue in a state other than running, live, idle or flow: down, minority, stopped, crashed, ...",
        f"{API} state",
        *LABELS,
        "state",
    ),
    "needs a node that is down",
)
MEMBER = gauge(
    "ackscope_queue_member_online",
    "Whether the replica on this node is online.",
    f"{API} members, online",
    *LABELS,
    "node",
)

_EACH = (*READERS, *queue_limits.READERS)
_WELL = ("running", "live", "idle", "flow")

SPECS = (INFO, NOT_RUNNING, *(it.spec for it in FIELD_METRICS), *(it.spec for it in _EACH), MEMBER)


def collect(clusters: Sequence[Snapshot], selection: Selection) -> list[Metric]:
    """Metric families of all clusters."""
    families = MetricFamilies(SPECS)
    for snapshot in clusters:
        if snapshot.queues.value is None:
            continue
        selected, naming = selection.of(snapshot.cluster).queues, _naming(snapshot.cluster)
        emit(families, selected, naming, FIELD_METRICS, _EACH)
        for queue in selected.shown:
            _describe(families, naming.labels(queue), queue)
    return families.result()


def _naming(cluster: str) -> LabelScheme[Queue]:
    return LabelScheme(
        key=lambda queue: queue.key,
        labels=lambda queue: {"cluster": cluster, "vhost": queue.vhost, "queue": queue.name},
        other={"cluster": cluster, "vhost": "", "queue": OTHER},
    )


def _describe(families: MetricFamilies, labels: dict[str, str], queue: Queue) -> None:
    what = {
        "queue_type": queue.type or "",
        "node": queue.leader or queue.node or "",
        "policy": queue.policy or "",
        "operator_policy": queue.operator_policy or "",
    }
    families.add(INFO, {**labels, **what}, 1)
    if queue.state is not None and queue.state not in _WELL:
        families.add(NOT_RUNNING, {**labels, "state": queue.state}, 1)
    if queue.members is not None and queue.online is not None:
        for node in queue.members:
            families.add(MEMBER, {**labels, "node": node}, int(node in queue.online))


COLLECTOR = Collector(SPECS, collect)
