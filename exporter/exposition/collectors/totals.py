"""Sums over all queues, shown or not: by type, state, virtual host and node (`/api/queues`)."""

from collections.abc import Sequence

from prometheus_client.core import Metric

from ackscope.snapshot import Snapshot
from exporter.exposition.cardinality.selection import QueueTotals, Selection
from exporter.exposition.collectors.contract import Collector
from exporter.exposition.specs import MetricFamilies, Spec, counter, gauge, untested_because

_API = "/api/queues"
_BY_TYPE = ("cluster", "queue_type")
_BY_VHOST = ("cluster", "vhost")

QUEUES = gauge(
    "ackscope_queues",
    "Queues by type and state, all queues included.",
    f"{_API} type, state",
    *_BY_TYPE,
    "state",
)
LEADERS = gauge(
    "ackscope_node_queues",
    "Queues located on a node or led there; an empty node stands for queues without one.",
    f"{_API} leader, node",
    "cluster",
    "node",
    "queue_type",
)
REPLICAS = gauge(
    "ackscope_queues_replication",
    "Replicated queues by state of their replicas: whole, partial (some offline), minority, leaderless.",
    f"{_API} members, online, leader, state",
    *_BY_TYPE,
    "replicas",
)
HIDDEN = untested_because(
    gauge(
        "ackscope_queues_hidden",
        "Queues that the overview counts but the list does not show, because the user lacks permission on "
        "their virtual hosts.",
        f"{_API}, /api/overview object_totals.queues",
        "cluster",
    ),
    "needs a user without access to all virtual hosts",
)

_SUMS = (
    ("messages", "messages", "Messages", "messages"),
    ("messages_ready", "messages_ready", "Ready messages", "messages_ready"),
    ("messages_unacked", "messages_unacked", "Unacknowledged messages", "messages_unacknowledged"),
    ("consumers", "consumers", "Consumers", "consumers"),
    ("messages_bytes", "message_bytes", "Size of all message bodies", "message_bytes"),
    ("process_memory_bytes", "memory", "Memory of the queue processes", "memory"),
)
_COUNTS = (
    ("messages_published", "publish", "Messages published into them"),
    ("messages_delivered_ack", "deliver", "Messages delivered to consumers with manual acknowledgement"),
    ("messages_delivered", "deliver_no_ack", "Messages delivered to consumers with automatic acknowledgement"),
    ("messages_redelivered", "redeliver", "Messages redelivered"),
    ("messages_acked", "ack", "Messages acknowledged"),
    ("get_ack", "get", "Messages fetched with basic.get, manual acknowledgement"),
    ("get", "get_no_ack", "Messages fetched with basic.get, automatic acknowledgement"),
    ("get_empty", "get_empty", "basic.get calls on an empty queue"),
)


def _sum(name: str, text: str, field: str, over: str, labels: tuple[str, ...]) -> Spec:
    return gauge(
        name,
        f"{text}, over all queues of {over}; no sample if one queue did not report it.",
        f"{_API} {field}",
        *labels,
    )


TYPE_SUMS = tuple(
    (path, _sum(f"ackscope_queues_{name}", text, field, "a type", _BY_TYPE)) for name, path, text, field in _SUMS
)
VHOST_SUMS = tuple(
    (path, _sum(f"ackscope_vhost_queue_{name}", text, field, "a virtual host", _BY_VHOST))
    for name, path, text, field in _SUMS
)
TYPE_COUNTS = tuple(
    (
        f"stats.{field}",
        counter(
            f"ackscope_queues_{name}_total",
            f"{text}, over all queues of a type, counted from when the exporter first read each; never falls.",
            f"{_API} message_stats.{field}",
            *_BY_TYPE,
        ),
    )
    for name, field, text in _COUNTS
)

SPECS = (
    *(QUEUES, LEADERS, REPLICAS, HIDDEN),
    *(spec for _, spec in (*TYPE_SUMS, *VHOST_SUMS, *TYPE_COUNTS)),
)


def collect(clusters: Sequence[Snapshot], selection: Selection) -> list[Metric]:
    """Metric families of all clusters."""
    families = MetricFamilies(SPECS)
    for snapshot in clusters:
        if snapshot.queues.value is None:
            continue
        _numbers(families, snapshot.cluster, selection.of(snapshot.cluster).totals)
        _sums(families, snapshot.cluster, selection.of(snapshot.cluster).totals)
        families.add(HIDDEN, {"cluster": snapshot.cluster}, snapshot.hidden_queues)
    return families.result()


def _numbers(families: MetricFamilies, cluster: str, totals: QueueTotals) -> None:
    for (queue_type, state), number in totals.states.items():
        families.add(QUEUES, {"cluster": cluster, "queue_type": queue_type, "state": state}, number)
    for (queue_type, node), number in totals.places.items():
        families.add(LEADERS, {"cluster": cluster, "node": node, "queue_type": queue_type}, number)
    replicated = {queue_type for queue_type, _ in totals.replicas}
    for queue_type in sorted(replicated):
        for how in ("whole", "partial", "minority", "leaderless"):  # always reported: alert rules compare them with 0
            labels = {"cluster": cluster, "queue_type": queue_type, "replicas": how}
            families.add(REPLICAS, labels, totals.replicas.get((queue_type, how), 0))


def _sums(families: MetricFamilies, cluster: str, totals: QueueTotals) -> None:
    for queue_type, tally in totals.types.items():
        labels = {"cluster": cluster, "queue_type": queue_type}
        for path, spec in TYPE_SUMS:
            families.add(spec, labels, tally.sums.get(path))
    for queue_type, counts in totals.counts.items():
        labels = {"cluster": cluster, "queue_type": queue_type}
        for path, spec in TYPE_COUNTS:
            families.add(spec, labels, counts.get(path))
    for vhost, tally in totals.vhosts.items():
        labels = {"cluster": cluster, "vhost": vhost}
        for path, spec in VHOST_SUMS:
            families.add(spec, labels, tally.sums.get(path))


COLLECTOR = Collector(SPECS, collect)
