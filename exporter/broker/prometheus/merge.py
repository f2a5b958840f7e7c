"""Joins the figures of the Prometheus endpoints with what the management API said, part by part.

A broker without statistics still lists its queues with their settings, and its nodes; the figures are added to these.
Without a management API, the figures are all there is. With both, they are compared. Sums over nodes are withheld while
a node is unread: a partial sum would look like a drained queue.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from ackscope.counters import MessageStats
from ackscope.second_source import Disagreement, MetricsReading, NativeTotals, QueueTypeTotals
from ackscope.snapshot import Alarm, HealthCheck, Node, Overview, Part, ProcessLists, Queue
from exporter.broker.endpoints.queues import QueueKey
from exporter.broker.prometheus.clients import (
    CHANNEL_EXCHANGE_COUNTERS,
    CHANNEL_GAUGES,
    CHANNEL_QUEUE_COUNTERS,
    process_lists,
)
from exporter.broker.prometheus.compare import SourceComparison
from exporter.broker.prometheus.exchanges import EXCHANGE_COUNTERS, ExchangeCounts
from exporter.broker.prometheus.figures import (
    AGGREGATED,
    DETAILED,
    NODE_GAUGES,
    OBJECT_TOTALS,
    OVERVIEW_COUNTERS,
    PEERS,
    QUEUE_COUNTERS,
    QUEUE_GAUGES,
    QUEUE_SIZES,
    NodeFigures,
    with_sum_of_deliveries,
)
from exporter.broker.prometheus.reader import MetricsScrape, is_server

PROCESSES = "processes"
"""Name of the part with channels and consumers by Erlang process."""

_EXCHANGE_ORIGINS = {
    f"message_stats.{counter}": (DETAILED, f"rabbitmq_detailed_{metric}")
    for metric, counter in (*EXCHANGE_COUNTERS.items(), ("exchange_messages_published_total", "publish_out"))
}
"""What is routed is what was published, less what no queue took."""

_CAPACITY = ("consumer_capacity", "consumer_utilisation")
_CLASSIC = "classic"


@dataclass(frozen=True, slots=True)
class _QueueTotals:
    """Figures of one queue over all nodes: the gauges of its leader, the counters of all nodes together."""

    type: str | None
    node: str | None
    gauges: Mapping[str, Any]
    counters: Mapping[str, int]


class FigureMerger:
    """Joins the readings of one cluster. Not thread-safe. An unchanged queue stays the same object.

    Args:
        alone: whether no management API is read.
    """

    def __init__(self, *, alone: bool) -> None:
        self._alone = alone
        self._seen: tuple[Part[Any], Part[Any], bool] | None = None
        self._queues: Part[tuple[Queue, ...]] = Part()
        self._joined: dict[QueueKey, tuple[Queue | None, _QueueTotals, Queue]] = {}
        self._processes: Part[ProcessLists] = Part()
        self._comparison = SourceComparison()
        self._exchange_counts = ExchangeCounts()
        self._exchanges: Part[Any] | None = None
        self._nodes: set[str] = set()

    def merged(
        self, parts: Mapping[str, Part[Any]], scrape: Part[MetricsScrape], *, settings_read: bool
    ) -> tuple[dict[str, Part[Any]], Part[MetricsReading]]:
        """Return the parts with the figures of the endpoints and `PROCESSES`, and how these were read.

        Args:
            parts: of the management API; empty parts without one.
            scrape: latest reading of the endpoints; an empty part if they are not read.
            settings_read: whether the list of queues has their settings also where it has no statistics.
        """
        value = scrape.value
        if value is None:
            return dict(parts), _read(scrape, None)
        overview: Overview | None = parts["overview"].value
        disagreements: tuple[Disagreement, ...] = ()
        found: dict[str, Part[Any]] = {}
        processes: dict[str, Part[Any]] = {}
        if self._alone or (overview is not None and overview.statistics is False):
            found["queues"] = self._merged_queues(parts["queues"], scrape, value, settings_read=settings_read)
            queues = found["queues"].value or ()
            processes[PROCESSES] = self._process_lists(scrape, value, queues)
            if overview is not None or self._alone:
                origins = _overview_origins(value)
                found["overview"] = self._part(
                    parts["overview"], scrape, _overview(overview or Overview(), value, queues), origins
                )
            if self._alone or parts["nodes"].value is not None:
                nodes = (*_nodes(parts["nodes"].value, value), *self._stopped(value))
                origins = _node_origins(value) | ({"running": (AGGREGATED, PEERS)} if self._alone else {})
                found["nodes"] = self._part(parts["nodes"], scrape, nodes, origins)
            exchanges = self._merged_exchanges(parts["exchanges"], scrape, value)
            if exchanges is not None:
                found["exchanges"] = exchanges
            alarms = _alarms(value) if self._alone else None
            if alarms is not None:
                origins = {"alarms": (AGGREGATED, "rabbitmq_alarms_memory_used_watermark")}
                found["health"] = self._part(Part(), scrape, (alarms,), origins)
        elif parts["queues"].value is not None:
            listed = parts["queues"]
            figures = {key: it.gauges for key, it in _by_queue(value, {}).items()}
            disagreements = self._comparison.compare(listed, figures, scrape.at)
        reading = MetricsReading(
            nodes=tuple(each.node.name for each in value.nodes),
            unread=value.unread,
            families=tuple(found),
            alone=self._alone,
            disagreements=disagreements,
            native=None if value.unread else _native([each.native for each in value.nodes]),
        )
        return {**parts, **found, **processes}, _read(scrape, reading)

    def _part(
        self, part: Part[Any], scrape: Part[MetricsScrape], value: Any, origins: Mapping[str, tuple[str, str]]
    ) -> Part[Any]:
        """Return a part with the figures. It is as old as these, unless the list that they belong to is older."""
        if self._alone:
            return replace(scrape, value=value, origins=origins)
        at, every = (scrape.at, scrape.every) if part.error is None else (part.at, part.every)
        return replace(part, value=value, at=at, every=every, origins=origins)

    def _process_lists(
        self, scrape: Part[MetricsScrape], value: MetricsScrape, queues: tuple[Queue, ...]
    ) -> Part[ProcessLists]:
        if value.channels_at is None:
            return Part()
        if self._processes.at != value.channels_at:
            channels = {each.node.name: each.channels or {} for each in value.nodes}
            lists = process_lists(channels, queues)
            self._processes = Part(
                value=lists,
                at=value.channels_at,
                seconds=scrape.seconds,
                every=scrape.every,
                origins=_CHANNEL_ORIGINS,
            )
        return self._processes

    def _stopped(self, value: MetricsScrape) -> tuple[Node, ...]:
        """Return the nodes that do not run, where no management API lists them.

        They were read or connected before. Now no node that answers is connected to them; a running node leaves the
        list of its peers as soon as the connection is lost. Seen on 4.3.6.
        """
        present = {name for each in value.nodes for name in (each.node.name, *each.peers) if is_server(name)}
        self._nodes |= present
        stopped = sorted(self._nodes - present) if self._alone else ()
        return tuple(Node(name=name, running=False) for name in stopped)

    def _merged_exchanges(
        self, listed: Part[Any], scrape: Part[MetricsScrape], value: MetricsScrape
    ) -> Part[Any] | None:
        """Return the exchanges with their counters; None if nothing counts them.

        While a node is unread, the latest ones stay: counters that go and come again would look like new messages.
        """
        # Every node lists all exchanges.
        known = self._exchange_counts.listed(value.nodes[0].exchange_types) if self._alone else listed.value
        if known is None or value.unread:
            return self._exchanges
        counted = self._exchange_counts.counted(known, [each.exchanges for each in value.nodes])
        if counted is not None:
            self._exchanges = self._part(listed, scrape, counted, _EXCHANGE_ORIGINS)
        return self._exchanges

    def _merged_queues(
        self, listed: Part[tuple[Queue, ...]], scrape: Part[MetricsScrape], value: MetricsScrape, *, settings_read: bool
    ) -> Part[tuple[Queue, ...]]:
        if self._seen is not None:
            before, figures_before, with_settings = self._seen
            if before is listed and figures_before is scrape and with_settings == settings_read:
                return self._queues
        if listed.value is None and not self._alone:
            return listed
        self._seen = (listed, scrape, settings_read)
        leaders = {queue.key: queue.leader or queue.node for queue in listed.value or ()}
        totals = _by_queue(value, leaders)
        if self._alone:
            pairs: Iterable[tuple[QueueKey, Queue | None]] = ((key, None) for key in sorted(totals))
        else:
            pairs = ((queue.key, queue) for queue in listed.value or ())
        joined: dict[QueueKey, tuple[Queue | None, _QueueTotals, Queue]] = {}
        queues = []
        for key, queue in pairs:
            figures = totals.get(key)
            if figures is None or (queue is not None and not settings_read and queue.details_at is None):
                # Not counted yet, or its settings are not known yet: absent settings would look like none.
                queues += [queue] if queue is not None else []
                continue
            known = self._joined.get(key)
            if known is None or known[0] is not queue or known[1] != figures:
                known = (queue, figures, _queue(key, queue, figures))
            joined[key] = known
            queues.append(known[2])
        self._joined = joined
        self._queues = self._part(listed, scrape, tuple(queues), _queue_origins(totals))
        return self._queues


def _read(scrape: Part[Any], value: MetricsReading | None) -> Part[MetricsReading]:
    return replace(scrape, value=value)


def _by_queue(value: MetricsScrape, leaders: Mapping[QueueKey, str | None]) -> dict[QueueKey, _QueueTotals]:
    """Return the figures of each queue over all nodes.

    A node that led a queue before may still show its last figures. Of several nodes, the leader's count; if it is not
    known which one leads, none do.
    """
    nodes: dict[QueueKey, list[NodeFigures]] = {}
    for each in value.nodes:
        for key in each.queues:
            nodes.setdefault(key, []).append(each)
    return {key: _totals(key, found, leaders.get(key), complete=not value.unread) for key, found in nodes.items()}


def _totals(key: QueueKey, nodes: list[NodeFigures], leader: str | None, *, complete: bool) -> _QueueTotals:
    figures = {each.node.name: each.queues[key] for each in nodes}
    counted = [name for name, it in figures.items() if it.gauges]
    leading = [name for name in counted if figures[name].leads] or [name for name in counted if name == leader]
    at = leading[0] if len(leading) == 1 else counted[0] if len(counted) == 1 else None
    counters: dict[str, int] = {}
    for it in figures.values() if complete else ():
        for name, value in it.counters.items():
            counters[name] = counters.get(name, 0) + value
    return _QueueTotals(
        type=next((it.type for it in figures.values() if it.type), None),
        node=at,
        gauges=figures[at].gauges if at is not None else {},
        counters=counters,
    )


def _queue(key: QueueKey, queue: Queue | None, figures: _QueueTotals) -> Queue:
    if queue is None:
        vhost, name = key
        queue = Queue(vhost=vhost, name=name, type=figures.type, node=figures.node, settings_known=False)
    gauges = dict(figures.gauges)
    if (queue.type or figures.type) != _CLASSIC:
        # A constant for the other types.
        gauges = {name: value for name, value in gauges.items() if name not in _CAPACITY}
    stats = with_sum_of_deliveries(MessageStats(**figures.counters)) if figures.counters else queue.stats
    # Its figures are as old as the part. What remains of the list changes seldom.
    return replace(queue, **gauges, stats=stats, details_at=None)


def _overview(overview: Overview, value: MetricsScrape, queues: tuple[Queue, ...]) -> Overview:
    """Return the overview with what it lacks. Sums need all nodes."""
    first = value.nodes[0]
    described = replace(
        overview,
        cluster_name=overview.cluster_name or first.cluster_name,
        rabbitmq_version=overview.rabbitmq_version or first.node.rabbitmq_version,
        erlang_version=overview.erlang_version or first.erlang_version,
        node=overview.node or first.node.name,
    )
    if value.unread:
        return described
    sums = {name: _sum(each.totals.get(name) for each in value.nodes) for name in OBJECT_TOTALS}
    counts = ("messages", "messages_ready", "messages_unacked")
    messages = {name: _sum(getattr(queue, name) for queue in queues) for name in counts}
    missing: dict[str, Any] = {**sums, **messages, "queues": len(queues)}
    return replace(
        described,
        **{name: number for name, number in missing.items() if getattr(overview, name) is None},
        stats=overview.stats if any(it is not None for it in overview.stats.all_counters()) else _stats(value),
        churn=overview.churn or _churn(value),
    )


def _sum(values: Iterable[int | None]) -> int | None:
    numbers = list(values)
    return None if None in numbers else sum(number or 0 for number in numbers)


def _stats(value: MetricsScrape) -> MessageStats:
    names = [each.name for each in fields(MessageStats)]
    found = {name: [number for it in value.nodes if (number := getattr(it.stats, name)) is not None] for name in names}
    return MessageStats(**{name: sum(numbers) for name, numbers in found.items() if numbers})


def _native(found: list[NativeTotals]) -> NativeTotals:
    """Return the totals of all nodes. Each member of a quorum queue has its log; the longest is that of the leader."""
    types = sorted({kind for each in found for kind in each.types})
    commands: dict[str, dict[str, int]] = {}
    for vhost, name, number in (
        (vhost, name, number)
        for each in found
        for vhost, queues in each.commands.items()
        for name, number in queues.items()
    ):
        held = commands.setdefault(vhost, {})
        held[name] = max(number, held.get(name, 0))
    return NativeTotals(
        received=_sum(each.received for each in found),
        awaited=_sum(each.awaited for each in found),
        unroutable=_sum(each.unroutable for each in found),
        to_confirm=_sum(each.to_confirm for each in found),
        confirmed=_sum(each.confirmed for each in found),
        unconfirmed=_sum(each.unconfirmed for each in found),
        dead_lettered=_common_sums([each.dead_lettered for each in found]),
        types={
            kind: QueueTypeTotals(
                **{
                    it.name: _sum(getattr(each.types.get(kind), it.name, None) for each in found)
                    for it in fields(QueueTypeTotals)
                }
            )
            for kind in types
        },
        commands=commands,
    )


def _common_sums(found: list[Mapping[str, int]]) -> dict[str, int]:
    """Return the sums of the counters that all nodes have."""
    names = {name for each in found for name in each}
    sums = {name: _sum(each.get(name) for each in found) for name in sorted(names)}
    return {name: number for name, number in sums.items() if number is not None}


def _churn(value: MetricsScrape) -> dict[str, int]:
    return _common_sums([each.node.churn for each in value.nodes])


def _nodes(listed: tuple[Node, ...] | None, value: MetricsScrape) -> tuple[Node, ...]:
    read = {each.node.name: each.node for each in value.nodes}
    if listed is None:
        return tuple(read.values())
    return tuple(_node(node, read[node.name]) if node.running and node.name in read else node for node in listed)


def _node(listed: Node, read: Node) -> Node:
    absent = (each.name for each in fields(Node) if getattr(listed, each.name) in (None, (), {}))
    return replace(listed, **{name: getattr(read, name) for name in absent})


def _alarms(value: MetricsScrape) -> HealthCheck | None:
    """Return the alarms of all nodes as the health check has them; None if one of them is unknown."""
    if value.unread or any(each.alarms is None for each in value.nodes):
        return None
    alarms = tuple(
        Alarm(node=each.node.name, resource=resource) for each in value.nodes for resource in each.alarms or ()
    )
    return HealthCheck(name="alarms", ok=not alarms, alarms=alarms)


_CHANNEL_ORIGINS: Mapping[str, tuple[str, str]] = {
    **{
        "messages_unacknowledged" if attribute == "messages_unacked" else attribute: (
            DETAILED,
            f"rabbitmq_detailed_{metric}",
        )
        for metric, attribute in CHANNEL_GAUGES.items()
    },
    **{
        f"message_stats.{counter}": (DETAILED, f"rabbitmq_detailed_{metric}")
        for metric, counter in (*CHANNEL_QUEUE_COUNTERS.items(), *CHANNEL_EXCHANGE_COUNTERS.items())
    },
}


def _queue_origins(totals: Mapping[QueueKey, _QueueTotals]) -> dict[str, tuple[str, str]]:
    gauges = {name for it in totals.values() for name in it.gauges}
    counters = {name for it in totals.values() for name in it.counters}
    origins = {
        api: (DETAILED, f"rabbitmq_detailed_{metric}")
        for metric, (attribute, api) in (*QUEUE_GAUGES.items(), *QUEUE_SIZES.items())
        if attribute in gauges
    }
    return origins | {
        f"message_stats.{counter}": (DETAILED, f"rabbitmq_detailed_{metric}")
        for metric, counter in QUEUE_COUNTERS.items()
        if counter in counters
    }


def _node_origins(value: MetricsScrape) -> dict[str, tuple[str, str]]:
    return {
        api: (DETAILED, f"rabbitmq_detailed_{metric}")
        for metric, (attribute, api) in NODE_GAUGES.items()
        if any(getattr(each.node, attribute) is not None for each in value.nodes)
    }


def _overview_origins(value: MetricsScrape) -> dict[str, tuple[str, str]]:
    origins = {
        f"message_stats.{counter}": (AGGREGATED, f"rabbitmq_{metric}")
        for metric, counter in OVERVIEW_COUNTERS.items()
        if any(getattr(each.stats, counter) is not None for each in value.nodes)
    }
    return origins | {f"object_totals.{name}": (AGGREGATED, f"rabbitmq_{name}") for name in OBJECT_TOTALS}
