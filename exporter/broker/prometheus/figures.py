"""What one node's Prometheus endpoint says, as figures of kernel objects. Pure.

Every table maps a metric of the plugin rabbitmq_prometheus to the field of the management API that reports the same
figure, so that what comes from either source has one meaning. Metrics that a version lacks leave their fields absent.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from ackscope.counters import MessageStats
from ackscope.second_source import NativeTotals, QueueTypeTotals
from ackscope.snapshot import Node
from ackscope.topology import NodeLink
from exporter.broker.endpoints.queues import QueueKey
from exporter.broker.fields import LARGEST
from exporter.broker.prometheus.clients import (
    CHANNEL_EXCHANGE_COUNTERS,
    CHANNEL_GAUGES,
    CHANNEL_QUEUE_COUNTERS,
    ROUTED,
    ChannelFigures,
)
from exporter.broker.prometheus.exchanges import EXCHANGE_COUNTERS, EXCHANGE_FAMILIES, EXCHANGE_NAME, ExchangeCounters
from exporter.broker.prometheus.samples import MetricSample, read_samples

K = TypeVar("K", bound=Hashable)

AGGREGATED, DETAILED = "/metrics", "/metrics/detailed"

_DETAILED, _PLAIN = "rabbitmq_detailed_", "rabbitmq_"

COARSE_FAMILIES = (
    *("node_coarse_metrics", "node_metrics", "connection_churn_metrics"),
    *("queue_coarse_metrics", "queue_consumer_count", "queue_delivery_metrics", "queue_exchange_metrics"),
    *EXCHANGE_FAMILIES,
)
"""Families that are read every time: nodes, message counts, consumers and counters of queues, counters of exchanges."""

SIZE_FAMILIES = ("queue_metrics",)
"""Sizes, memory and capacity of queues: twenty figures a queue, more than all others together."""

COMMAND_FAMILIES = ("ra_metrics",)
"""Families of the logs of quorum queues."""

QUEUE_GAUGES: Mapping[str, tuple[str, str]] = {
    "queue_messages": ("messages", "messages"),
    "queue_messages_ready": ("messages_ready", "messages_ready"),
    "queue_messages_unacked": ("messages_unacked", "messages_unacknowledged"),
    "queue_process_reductions_total": ("reductions", "reductions"),
    "queue_consumers": ("consumers", "consumers"),
}
"""Metric -> attribute of a queue, field of the management API; of the families read every time."""

QUEUE_SIZES: Mapping[str, tuple[str, str]] = {
    "queue_consumer_capacity": ("consumer_capacity", "consumer_capacity"),
    "queue_consumer_utilisation": ("consumer_utilisation", "consumer_utilisation"),
    "queue_process_memory_bytes": ("memory", "memory"),
    "queue_messages_ram": ("messages_ram", "messages_ram"),
    "queue_messages_ready_ram": ("messages_ready_ram", "messages_ready_ram"),
    "queue_messages_unacked_ram": ("messages_unacked_ram", "messages_unacknowledged_ram"),
    "queue_messages_persistent": ("messages_persistent", "messages_persistent"),
    "queue_messages_bytes": ("message_bytes", "message_bytes"),
    "queue_messages_ready_bytes": ("message_bytes_ready", "message_bytes_ready"),
    "queue_messages_unacked_bytes": ("message_bytes_unacked", "message_bytes_unacknowledged"),
    "queue_messages_ram_bytes": ("message_bytes_ram", "message_bytes_ram"),
    "queue_messages_persistent_bytes": ("message_bytes_persistent", "message_bytes_persistent"),
    "queue_head_message_timestamp": ("head_message_timestamp", "head_message_timestamp"),
    "stream_segments": ("segments", "segments"),
}
"""The same, of the families that are read less often from a broker with many queues."""

QUEUE_COUNTERS: Mapping[str, str] = {
    "queue_exchange_messages_published_total": "publish",
    "queue_messages_delivered_ack_total": "deliver",
    "queue_messages_delivered_total": "deliver_no_ack",
    "queue_get_ack_total": "get",
    "queue_get_total": "get_no_ack",
    "queue_get_empty_total": "get_empty",
    "queue_messages_acked_total": "ack",
    "queue_messages_redelivered_total": "redeliver",
}
"""Metric -> counter of a queue; from 4.0 on. Before, only channels count, and forget when they close."""

NODE_GAUGES: Mapping[str, tuple[str, str]] = {
    "process_resident_memory_bytes": ("mem_used", "mem_used"),
    "resident_memory_limit_bytes": ("mem_limit", "mem_limit"),
    "disk_space_available_bytes": ("disk_free", "disk_free"),
    "disk_space_available_limit_bytes": ("disk_free_limit", "disk_free_limit"),
    "process_open_fds": ("fd_used", "fd_used"),
    "process_max_fds": ("fd_total", "fd_total"),
    "erlang_processes_used": ("proc_used", "proc_used"),
    "erlang_processes_limit": ("proc_total", "proc_total"),
    "erlang_scheduler_run_queue": ("run_queue", "run_queue"),
    "erlang_net_ticktime_seconds": ("net_ticktime", "net_ticktime"),
    "erlang_uptime_seconds": ("uptime_seconds", "uptime"),
    "erlang_gc_runs_total": ("gc_num", "gc_num"),
    "erlang_gc_reclaimed_bytes_total": ("gc_bytes_reclaimed", "gc_bytes_reclaimed"),
    "erlang_scheduler_context_switches_total": ("context_switches", "context_switches"),
}
"""Metric -> attribute of a node, field of the management API."""

_SOCKETS: Mapping[str, tuple[str, str]] = {
    "process_open_tcp_sockets": ("sockets_used", "sockets_used"),
    "process_max_tcp_sockets": ("sockets_total", "sockets_total"),
}
"""As above; removed in 4.0."""

CHURN: Mapping[str, str] = {
    "connections_opened_total": "connection_created",
    "connections_closed_total": "connection_closed",
    "channels_opened_total": "channel_created",
    "channels_closed_total": "channel_closed",
    "queues_declared_total": "queue_declared",
    "queues_created_total": "queue_created",
    "queues_deleted_total": "queue_deleted",
}

OVERVIEW_COUNTERS: Mapping[str, str] = {
    "global_messages_received_total": "publish",
    "global_messages_confirmed_total": "confirm",
    "global_messages_unroutable_dropped_total": "drop_unroutable",
    "global_messages_unroutable_returned_total": "return_unroutable",
    "global_messages_delivered_consume_manual_ack_total": "deliver",
    "global_messages_delivered_consume_auto_ack_total": "deliver_no_ack",
    "global_messages_delivered_get_manual_ack_total": "get",
    "global_messages_delivered_get_auto_ack_total": "get_no_ack",
    "global_messages_get_empty_total": "get_empty",
    "global_messages_acknowledged_total": "ack",
    "global_messages_redelivered_total": "redeliver",
}
"""Metric -> counter of the overview. The management API counts AMQP 0-9-1 only, so this is the only label taken."""

_AMQP, _AMQP10 = "amqp091", "amqp10"

NATIVE_COUNTERS: Mapping[str, str] = {
    "global_messages_received_total": "received",
    "global_messages_received_confirm_total": "awaited",
    "global_messages_unroutable_returned_total": "unroutable",
}
"""Metric -> total of AMQP 1.0 clients."""

_CONFIRMS: Mapping[str, str] = {
    "global_messages_received_confirm_total": "to_confirm",
    "global_messages_confirmed_total": "confirmed",
    "channel_messages_unconfirmed": "unconfirmed",
}
"""Metric -> total of the publishers of all protocols that wait for confirms."""

NATIVE_BY_TYPE: Mapping[str, str] = {
    "global_messages_delivered_total": "delivered",
    "global_messages_acknowledged_total": "accepted",
    "global_messages_redelivered_total": "redelivered",
}
"""Metric -> total of AMQP 1.0 clients, by the type of the queue."""

DELETED_BY_TYPE: Mapping[str, str] = {
    "global_messages_dead_lettered_rejected_total": "rejected",
    "global_messages_dead_lettered_delivery_limit_total": "over_limit",
    "global_messages_dead_lettered_expired_total": "expired",
    "global_messages_dead_lettered_maxlen_total": "over_length",
}
"""Metric -> messages of all protocols that queues without a dead-letter exchange deleted, by the type of the queue."""

IDENTITY = f"{_PLAIN}identity_info"
"""Metric whose labels name the node that answers."""

_NOWHERE = "disabled"
"""The strategy of a queue without a dead-letter exchange."""

COMMANDS = "raft_log_commit_index"
"""Metric of the number of commands in the log of a quorum queue."""

OBJECT_TOTALS = {"connections": "connections", "channels": "channels", "consumers": "consumers"}
"""Metric -> total of the overview; of one node. The number of queues is counted from the queues themselves."""

_ALARMS = {"alarms_memory_used_watermark": "memory", "alarms_free_disk_space_watermark": "disk"}

_PROCESSORS = "erlang_vm_logical_processors"
_LINKS = {"erlang_vm_dist_recv_bytes": "recv_bytes", "erlang_vm_dist_send_bytes": "send_bytes"}
PEERS = "erlang_vm_dist_node_state"
"""Metric with one row for each node that a node is connected to."""
_TYPES = {"rabbit_classic_queue": "classic", "rabbit_quorum_queue": "quorum", "rabbit_stream_queue": "stream"}

_FRACTIONS = frozenset({"consumer_capacity", "consumer_utilisation", "uptime_seconds"})
"""Attributes that are not whole numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFigures:
    """Figures of one queue at one node.

    Attributes:
        leads: whether this node leads the queue; None before 4.1, which does not say so.
        gauges: attribute of a queue -> value.
        counters: counter -> messages that channels of this node published, delivered and so on.
    """

    type: str | None = None
    leads: bool | None = None
    gauges: Mapping[str, Any] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFigures:
    """What the endpoint of one node says.

    Attributes:
        node: its record, without what the endpoint does not tell.
        cluster_name: name of its cluster.
        erlang_version: of its virtual machine.
        peers: nodes that it is connected to, or was.
        alarms: resources with an alarm at this node; None if not read.
        totals: connections, channels and consumers at this node.
        stats: counters of AMQP 0-9-1 at this node.
        queues: figures by queue.
        native: what this node counts, and the management API does not.
        channels: figures by Erlang process of the channel; None where they were not asked for.
        exchanges: counters of exchanges; before 4.0 there are none.
        exchange_types: type of each exchange of the cluster; empty where they were not asked for.
    """

    node: Node
    cluster_name: str | None = None
    erlang_version: str | None = None
    peers: tuple[str, ...] = ()
    alarms: tuple[str, ...] | None = None
    totals: Mapping[str, int] = field(default_factory=dict)
    stats: MessageStats = field(default_factory=MessageStats)
    queues: Mapping[QueueKey, QueueFigures] = field(default_factory=dict)
    native: NativeTotals = field(default_factory=NativeTotals)
    channels: Mapping[str, ChannelFigures] | None = None
    exchanges: ExchangeCounters = field(default_factory=dict)
    exchange_types: Mapping[tuple[str, str], str] = field(default_factory=dict)


def _wanted() -> frozenset[str]:
    queues = (*QUEUE_GAUGES, *QUEUE_SIZES, *QUEUE_COUNTERS, "queue_info", COMMANDS)
    channels = (*CHANNEL_GAUGES, *CHANNEL_QUEUE_COUNTERS, *CHANNEL_EXCHANGE_COUNTERS, ROUTED)
    detailed = (*queues, *channels, *NODE_GAUGES, *_SOCKETS, *CHURN)
    native = (*NATIVE_COUNTERS, *_CONFIRMS, *NATIVE_BY_TYPE, *DELETED_BY_TYPE)
    aggregated = (*OVERVIEW_COUNTERS, *native, *OBJECT_TOTALS, *_ALARMS, "build_info", "identity_info")
    return frozenset(
        {
            *(f"{_DETAILED}{name}" for name in detailed),
            *(f"{_DETAILED}{name}" for name in EXCHANGE_COUNTERS),
            *(f"{_PLAIN}{name}" for name in aggregated),
            *(_PROCESSORS, PEERS, *_LINKS, EXCHANGE_NAME),
        }
    )


WANTED = _wanted()
"""Names of all metrics that are used."""


def decode_figures(texts: Iterable[str], *, channels: bool = False) -> NodeFigures | None:
    """Decode the answers of one node. None if they do not name the node, so that they are not those of a broker.

    Args:
        texts: the answers.
        channels: whether the families of channels were asked for.

    Raises:
        ValueError: an answer is not in the text format of Prometheus.
    """
    by_name: dict[str, list[MetricSample]] = defaultdict(list)
    for text in texts:
        for sample in read_samples(text, WANTED):
            # As from the management API: a number that no broker can have is no number.
            usable = 0 <= sample.value < LARGEST
            by_name[sample.name].append(sample if usable else sample._replace(value=math.nan))
    identity = _labels(by_name, IDENTITY)
    name = identity.get("rabbitmq_node")
    if not name:
        return None
    build = _labels(by_name, f"{_PLAIN}build_info")
    alarms = {alarm: _alone(by_name, f"{_PLAIN}{metric}") for metric, alarm in _ALARMS.items()}
    version = build.get("rabbitmq_version")
    node = Node(
        name=name,
        running=True,
        rabbitmq_version=version,
        mem_alarm=_truth(alarms["memory"]),
        disk_free_alarm=_truth(alarms["disk"]),
        processors=_whole(_alone(by_name, _PROCESSORS)),
        churn=_values(by_name, _DETAILED, CHURN),
        links=_links(by_name),
        **_attributes(by_name, NODE_GAUGES),
        **_attributes(by_name, _SOCKETS),
    )
    known = [alarm for alarm, value in alarms.items() if value is not None]
    return NodeFigures(
        node=node,
        cluster_name=identity.get("rabbitmq_cluster"),
        erlang_version=build.get("erlang_version"),
        peers=tuple(sorted({sample.labels.get("peer", "") for sample in by_name[PEERS]} - {""})),
        alarms=tuple(alarm for alarm in known if alarms[alarm]) if len(known) == len(alarms) else None,
        totals=_values(by_name, _PLAIN, OBJECT_TOTALS),
        stats=with_sum_of_deliveries(MessageStats(**_counters_of_amqp(by_name))),
        queues=_queues(by_name),
        native=_native(by_name),
        channels=_channels(by_name) if channels else None,
        exchanges=_exchanges(by_name),
        exchange_types={_exchange_key(each): each.labels.get("type", "") for each in by_name[EXCHANGE_NAME]},
    )


def with_sum_of_deliveries(stats: MessageStats) -> MessageStats:
    """Return the counters with `deliver_get`, which the management API computes in the same way."""
    parts = (stats.deliver, stats.deliver_no_ack, stats.get, stats.get_no_ack)
    known = [part for part in parts if part is not None]
    return replace(stats, deliver_get=sum(known)) if known else stats


def _queues(by_name: Mapping[str, list[MetricSample]]) -> dict[QueueKey, QueueFigures]:
    gauges: dict[QueueKey, dict[str, Any]] = defaultdict(dict)
    for metric, (attribute, _) in (*QUEUE_GAUGES.items(), *QUEUE_SIZES.items()):
        for sample in by_name.get(f"{_DETAILED}{metric}", ()):
            value = sample.value if attribute in _FRACTIONS else _whole(sample.value)
            if value is not None and not math.isnan(value):
                gauges[_key(sample)][attribute] = value
    # A queue has one row for each exchange that routed to it.
    counters = _sums(by_name, QUEUE_COUNTERS, _key)
    described = {_key(sample): sample.labels for sample in by_name.get(f"{_DETAILED}queue_info", ())}
    queues = {}
    for key in dict.fromkeys([*described, *gauges, *counters]):
        info = described.get(key, {})
        kind, membership = _TYPES.get(info.get("queue_type", "")), info.get("membership")
        queues[key] = QueueFigures(
            type=kind,
            leads=membership == "leader" if membership in {"leader", "follower"} else None,
            gauges=gauges.get(key, {}),
            counters=_known(counters.get(key, {})),
        )
    return queues


def _channels(by_name: Mapping[str, list[MetricSample]]) -> dict[str, ChannelFigures]:
    gauges: dict[str, dict[str, int]] = defaultdict(dict)
    queues: dict[str, dict[QueueKey, dict[str, int]]] = defaultdict(dict)
    exchanges: dict[str, dict[tuple[str, str], dict[str, int]]] = defaultdict(dict)
    routed: dict[str, set[QueueKey]] = defaultdict(set)
    for metric, attribute in CHANNEL_GAUGES.items():
        for sample in by_name.get(f"{_DETAILED}{metric}", ()):
            value = _whole(sample.value)
            if value is not None:
                gauges[_process(sample)][attribute] = value
    of_queues = _sums(by_name, CHANNEL_QUEUE_COUNTERS, lambda it: (_process(it), _key(it)))
    of_exchanges = _sums(by_name, CHANNEL_EXCHANGE_COUNTERS, lambda it: (_process(it), _exchange_key(it)))
    for (process, key), counters in of_queues.items():
        queues[process][key] = _known(counters)
    for (process, place), counters in of_exchanges.items():
        exchanges[process][place] = _known(counters)
    for sample in by_name.get(f"{_DETAILED}{ROUTED}", ()):
        routed[_process(sample)].add((sample.labels.get("queue_vhost", ""), sample.labels.get("queue", "")))
    return {
        process: ChannelFigures(
            gauges=found,
            queues=queues[process],
            exchanges=exchanges[process],
            routed=frozenset(routed[process]),
        )
        for process, found in gauges.items()
        if process
    }


def _exchanges(by_name: Mapping[str, list[MetricSample]]) -> dict[tuple[str, str], dict[str, int]]:
    found = _sums(by_name, EXCHANGE_COUNTERS, _exchange_key)
    return {key: _known(counters) for key, counters in found.items()}


def _sums(
    by_name: Mapping[str, list[MetricSample]], table: Mapping[str, str], key: Callable[[MetricSample], K]
) -> dict[K, dict[str, int | None]]:
    """Return what the detailed metrics of a table (metric -> counter) count for each key."""
    found: dict[K, dict[str, int | None]] = defaultdict(dict)
    for metric, counter in table.items():
        for sample in by_name.get(f"{_DETAILED}{metric}", ()):
            _add(found[key(sample)], counter, sample.value)
    return found


def _process(sample: MetricSample) -> str:
    return sample.labels.get("channel", "")


def _exchange_key(sample: MetricSample) -> tuple[str, str]:
    return (sample.labels.get("vhost", ""), sample.labels.get("exchange", ""))


def _key(sample: MetricSample) -> QueueKey:
    return (sample.labels.get("vhost", ""), sample.labels.get("queue", ""))


def _labels(by_name: Mapping[str, list[MetricSample]], name: str) -> dict[str, str]:
    samples = by_name.get(name)
    return samples[0].labels if samples else {}


def _alone(by_name: Mapping[str, list[MetricSample]], name: str) -> float | None:
    samples = by_name.get(name)
    return samples[0].value if samples and not math.isnan(samples[0].value) else None


def _whole(value: float | None) -> int | None:
    return None if value is None or not math.isfinite(value) else int(value)


def _truth(value: float | None) -> bool | None:
    return None if value is None else bool(value)


def _attributes(by_name: Mapping[str, list[MetricSample]], table: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    found = {}
    for metric, (attribute, _) in table.items():
        value = _alone(by_name, f"{_DETAILED}{metric}")
        found[attribute] = value if attribute in _FRACTIONS else _whole(value)
    return found


def _values(by_name: Mapping[str, list[MetricSample]], prefix: str, table: Mapping[str, str]) -> dict[str, int]:
    values = {name: _whole(_alone(by_name, f"{prefix}{metric}")) for metric, name in table.items()}
    return {name: value for name, value in values.items() if value is not None}


def _counters_of_amqp(by_name: Mapping[str, list[MetricSample]]) -> dict[str, int]:
    found: dict[str, int | None] = {}
    for metric, counter in OVERVIEW_COUNTERS.items():
        for sample in by_name.get(f"{_PLAIN}{metric}", ()):
            # One row for each type of queue.
            if sample.labels.get("protocol") == _AMQP:
                _add(found, counter, sample.value)
    return _known(found)


def _native(by_name: Mapping[str, list[MetricSample]]) -> NativeTotals:
    found: dict[str, int | None] = {}
    for metric, name in NATIVE_COUNTERS.items():
        for sample in by_name.get(f"{_PLAIN}{metric}", ()):
            if sample.labels.get("protocol") == _AMQP10:
                _add(found, name, sample.value)
    for metric, name in _CONFIRMS.items():
        for sample in by_name.get(f"{_PLAIN}{metric}", ()):
            _add(found, name, sample.value)
    dead_lettered: dict[str, int | None] = {}
    for metric, name in DELETED_BY_TYPE.items():
        for sample in by_name.get(f"{_PLAIN}{metric}", ()):
            if sample.labels.get("dead_letter_strategy") not in {None, _NOWHERE}:
                _add(dead_lettered, name, sample.value)
    types: dict[str, dict[str, int | None]] = defaultdict(dict)
    for table, label, value in (
        (NATIVE_BY_TYPE, "protocol", _AMQP10),
        (DELETED_BY_TYPE, "dead_letter_strategy", _NOWHERE),
    ):
        for metric, name in table.items():
            for sample in by_name.get(f"{_PLAIN}{metric}", ()):
                kind = _TYPES.get(sample.labels.get("queue_type", ""))
                if kind is not None and sample.labels.get(label) == value:
                    _add(types[kind], name, sample.value)
    commands: dict[str, dict[str, int]] = defaultdict(dict)
    for sample in by_name.get(f"{_DETAILED}{COMMANDS}", ()):
        number = _whole(sample.value)
        # The logs of the broker itself have neither.
        if number is not None and "queue" in sample.labels:
            vhost, queue = _key(sample)
            commands[vhost][queue] = number
    return NativeTotals(
        **_known(found),
        dead_lettered=_known(dead_lettered),
        types={kind: QueueTypeTotals(**_known(each)) for kind, each in types.items()},
        commands=dict(commands),
    )


def _add(sums: dict[str, int | None], counter: str, value: float) -> None:
    """Add to a sum; without one of its parts it is unknown."""
    before, part = sums.get(counter, 0), _whole(value)
    sums[counter] = None if before is None or part is None else before + part


def _known(sums: Mapping[str, int | None]) -> dict[str, int]:
    return {counter: value for counter, value in sums.items() if value is not None and value < LARGEST}


def _links(by_name: Mapping[str, list[MetricSample]]) -> tuple[NodeLink, ...]:
    links: dict[str, dict[str, int]] = defaultdict(dict)
    for metric, attribute in _LINKS.items():
        for sample in by_name.get(metric, ()):
            value = _whole(sample.value)
            if value is not None and sample.labels.get("peer"):
                links[sample.labels["peer"]][attribute] = value
    return tuple(NodeLink(peer=peer, **values) for peer, values in sorted(links.items()))
