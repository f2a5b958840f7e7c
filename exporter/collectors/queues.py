"""The queues: each one's own series up to the cap, and aggregates over all of them (`/api/queues`)."""

from collections import defaultdict
from collections.abc import Sequence

from prometheus_client.core import Metric

from ackscope.snapshot import Queue, Snapshot
from exporter.collectors.contract import Collector, Limits, shown_queues
from exporter.metrics import Families, Reading, Spec, counter, gauge, whole_sum

_LABELS = ("cluster", "vhost", "queue")
_API = "/api/queues"


def _queue(name: str, text: str, field: str) -> Spec:
    return gauge(name, text, f"{_API} {field}", *_LABELS)


def _count(name: str, text: str, field: str) -> Spec:
    return counter(name, text, f"{_API} message_stats.{field}", *_LABELS)


INFO = gauge(
    "ackscope_queue_info",
    "What the queue is and where it (its leader) lives; always 1.",
    f"{_API} type, node, policy",
    *_LABELS,
    "queue_type",
    "node",
    "policy",
)
QUEUES = gauge(
    "ackscope_queues",
    "Queues by type and state, over all of them.",
    f"{_API} type, state",
    "cluster",
    "queue_type",
    "state",
)
READY = gauge(
    "ackscope_queues_messages_ready",
    "Messages waiting, over all queues of a type; withheld when one of them did not say.",
    f"{_API} messages_ready",
    "cluster",
    "queue_type",
)
UNACKED = gauge(
    "ackscope_queues_messages_unacked",
    "Messages delivered and not acknowledged, over all queues of a type; withheld when one did not say.",
    f"{_API} messages_unacknowledged",
    "cluster",
    "queue_type",
)
HIDDEN = gauge(
    "ackscope_queues_hidden",
    "Queues that the overview counts and the list does not show, for lack of permission on their virtual hosts.",
    f"{_API}, /api/overview object_totals.queues",
    "cluster",
)

_READINGS: tuple[Reading[Queue], ...] = (
    Reading(_queue("rabbitmq_queue_messages", "Messages, ready and unacknowledged.", "messages"), lambda q: q.messages),
    Reading(
        _queue("rabbitmq_queue_messages_ready", "Messages that wait to be delivered.", "messages_ready"),
        lambda q: q.messages_ready,
    ),
    Reading(
        _queue(
            "rabbitmq_queue_messages_unacked",
            "Messages delivered and not acknowledged.",
            "messages_unacknowledged",
        ),
        lambda q: q.messages_unacked,
    ),
    Reading(_queue("rabbitmq_queue_consumers", "Consumers.", "consumers"), lambda q: q.consumers),
    Reading(
        _queue(
            "rabbitmq_queue_consumer_capacity",
            "Share of time, 0 to 1, in which messages could go to consumers at once; classic queues only.",
            "consumer_capacity",
        ),
        lambda q: q.consumer_capacity,
    ),
    Reading(
        _queue("rabbitmq_queue_process_memory_bytes", "Memory of the queue's process.", "memory"),
        lambda q: q.memory,
    ),
    Reading(
        _queue("rabbitmq_queue_messages_bytes", "Size of all message bodies.", "message_bytes"),
        lambda q: q.message_bytes,
    ),
    Reading(
        _queue("rabbitmq_queue_messages_ready_bytes", "Size of waiting message bodies.", "message_bytes_ready"),
        lambda q: q.message_bytes_ready,
    ),
    Reading(
        _queue(
            "rabbitmq_queue_messages_unacked_bytes",
            "Size of message bodies delivered and not acknowledged.",
            "message_bytes_unacknowledged",
        ),
        lambda q: q.message_bytes_unacked,
    ),
    Reading(
        _queue(
            "rabbitmq_queue_head_message_timestamp",
            "Time property of the first message, seconds since 1970, where publishers set it; classic queues only.",
            "head_message_timestamp",
        ),
        lambda q: q.head_message_timestamp,
    ),
    Reading(
        _queue("ackscope_queue_members", "Replicas of a quorum queue or stream.", "members"),
        lambda q: None if q.members is None else len(q.members),
    ),
    Reading(
        _queue("ackscope_queue_members_online", "Replicas that are online.", "online"),
        lambda q: None if q.online is None else len(q.online),
    ),
    Reading(
        _count("rabbitmq_queue_messages_published_total", "Messages published into the queue.", "publish"),
        lambda q: q.stats.publish,
    ),
    Reading(
        _count(
            "rabbitmq_queue_messages_delivered_ack_total",
            "Messages delivered to consumers that acknowledge.",
            "deliver",
        ),
        lambda q: q.stats.deliver,
    ),
    Reading(
        _count(
            "rabbitmq_queue_messages_delivered_total",
            "Messages delivered to consumers with automatic acknowledgement.",
            "deliver_no_ack",
        ),
        lambda q: q.stats.deliver_no_ack,
    ),
    Reading(
        _count("rabbitmq_queue_messages_redelivered_total", "Messages delivered again.", "redeliver"),
        lambda q: q.stats.redeliver,
    ),
    Reading(
        _count("rabbitmq_queue_messages_acked_total", "Messages acknowledged.", "ack"),
        lambda q: q.stats.ack,
    ),
    Reading(
        _count("rabbitmq_queue_get_ack_total", "Messages fetched with basic.get, to be acknowledged.", "get"),
        lambda q: q.stats.get,
    ),
    Reading(
        _count(
            "rabbitmq_queue_get_total",
            "Messages fetched with basic.get, acknowledged automatically.",
            "get_no_ack",
        ),
        lambda q: q.stats.get_no_ack,
    ),
    Reading(
        _count("rabbitmq_queue_get_empty_total", "basic.get that found the queue empty.", "get_empty"),
        lambda q: q.stats.get_empty,
    ),
)

SPECS = (INFO, *(reading.spec for reading in _READINGS), QUEUES, READY, UNACKED, HIDDEN)


def collect(clusters: Sequence[Snapshot], limits: Limits) -> list[Metric]:
    """Families of all clusters."""
    families = Families(SPECS)
    for snapshot in clusters:
        queues = snapshot.queues.value
        if queues is None:
            continue
        for queue in shown_queues(queues, limits.queues):
            _one(families, snapshot.cluster, queue)
        _all(families, snapshot.cluster, queues)
        families.add(HIDDEN, {"cluster": snapshot.cluster}, snapshot.hidden_queues)
    return families.result()


def _one(families: Families, cluster: str, queue: Queue) -> None:
    labels = {"cluster": cluster, "vhost": queue.vhost, "queue": queue.name}
    what = {
        "queue_type": queue.type or "",
        "node": queue.leader or queue.node or "",
        "policy": queue.policy or "",
    }
    families.add(INFO, {**labels, **what}, 1)
    for reading in _READINGS:
        families.add(reading.spec, labels, reading.read(queue))


def _all(families: Families, cluster: str, queues: Sequence[Queue]) -> None:
    states: defaultdict[tuple[str, str], int] = defaultdict(int)
    types: defaultdict[str, list[Queue]] = defaultdict(list)
    for queue in queues:
        states[queue.type or "unknown", queue.state or "unknown"] += 1
        types[queue.type or "unknown"].append(queue)
    for (queue_type, state), number in sorted(states.items()):
        families.add(QUEUES, {"cluster": cluster, "queue_type": queue_type, "state": state}, number)
    for queue_type, members in sorted(types.items()):
        labels = {"cluster": cluster, "queue_type": queue_type}
        families.add(READY, labels, whole_sum(queue.messages_ready for queue in members))
        families.add(UNACKED, labels, whole_sum(queue.messages_unacked for queue in members))


COLLECTOR = Collector(SPECS, collect)
