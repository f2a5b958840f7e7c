"""Consumers of each selected queue: acknowledgement modes and prefetch (`/api/consumers`).

Queues without consumers have no samples.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from prometheus_client.core import Metric

from ackscope.snapshot import Consumer, Queue, Snapshot
from exporter.exposition.cardinality.selection import Selection
from exporter.exposition.collectors.contract import Collector
from exporter.exposition.specs import MetricFamilies, gauge, whole_sum

_LABELS = ("cluster", "vhost", "queue")

CONSUMERS = gauge(
    "ackscope_queue_consumers",
    "Consumers by acknowledgement mode (manual, automatic).",
    "/api/consumers ack_required",
    *_LABELS,
    "ack_mode",
)
PREFETCH = gauge(
    "ackscope_consumer_prefetch",
    "Sum of the prefetch limits of the queue's consumers with manual acknowledgement; no sample if one "
    "of them has no limit of its own.",
    "/api/consumers prefetch_count",
    *_LABELS,
)
UNLIMITED = gauge(
    "ackscope_prefetch_unlimited_consumers",
    "Consumers with manual acknowledgement and no prefetch limit, neither their own nor their channel's.",
    "/api/consumers prefetch_count, /api/channels global_prefetch_count",
    *_LABELS,
)
USED = gauge(
    "ackscope_prefetch_used_ratio",
    "Unacknowledged messages of the queue divided by the prefetch of its consumers; near 1 the broker "
    "waits for acknowledgements.",
    "/api/queues messages_unacknowledged, /api/consumers prefetch_count",
    *_LABELS,
)

SPECS = (CONSUMERS, PREFETCH, UNLIMITED, USED)


def collect(clusters: Sequence[Snapshot], selection: Selection) -> list[Metric]:
    """Metric families of all clusters."""
    families = MetricFamilies(SPECS)
    for snapshot in clusters:
        if snapshot.consumers.value is None:
            continue
        queues: dict[tuple[str, str], list[Consumer]] = defaultdict(list)
        for consumer in snapshot.consumers.value:
            queues[consumer.vhost, consumer.queue].append(consumer)
        global_limits = _global_limits(snapshot)
        selected = selection.of(snapshot.cluster)
        shown = {queue.key: queue for queue in selected.queues.shown}
        # Show the selected queues as elsewhere. If queues could not be read, show the queues of the selected consumers.
        keys = (
            shown if snapshot.queues.value else dict.fromkeys((it.vhost, it.queue) for it in selected.consumers.shown)
        )
        for key in keys:
            if key in queues:
                _one(families, snapshot.cluster, key, queues[key], shown.get(key), global_limits)
    return families.result()


def _global_limits(snapshot: Snapshot) -> dict[str, int]:
    """Return the prefetch that the consumers of a channel share, by channel name; without channels that report none."""
    return {
        channel.name: channel.global_prefetch_count
        for channel in snapshot.channels.value or ()
        if channel.global_prefetch_count is not None
    }


def _one(
    families: MetricFamilies,
    cluster: str,
    key: tuple[str, str],
    consumers: Sequence[Consumer],
    queue: Queue | None,
    global_limits: Mapping[str, int],
) -> None:
    labels = {"cluster": cluster, "vhost": key[0], "queue": key[1]}
    modes = Counter(consumer.ack_required for consumer in consumers)
    for name, required in (("manual", True), ("automatic", False)):
        families.add(CONSUMERS, {**labels, "ack_mode": name}, modes[required])
    manual = [consumer for consumer in consumers if consumer.ack_required]
    if not manual or modes[None]:
        return
    families.add(UNLIMITED, labels, whole_sum(_unlimited(consumer, global_limits) for consumer in manual))
    prefetch = whole_sum(consumer.prefetch_count or None for consumer in manual)
    families.add(PREFETCH, labels, prefetch)
    if prefetch and queue is not None and queue.messages_unacked is not None:
        families.add(USED, labels, queue.messages_unacked / prefetch)


def _unlimited(consumer: Consumer, global_limits: Mapping[str, int]) -> int | None:
    if consumer.prefetch_count is None:
        return None
    if consumer.prefetch_count > 0:
        return 0
    # 0 means "no limit of its own": basic.qos with the global flag limits the whole channel instead.
    shared = global_limits.get(consumer.channel_name or "")
    return None if shared is None else int(shared == 0)


COLLECTOR = Collector(SPECS, collect)
