"""Reads the Prometheus endpoints of all nodes of one cluster."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ackscope.clock import Clock, Instant
from ackscope.errors import BadAnswer, BrokerError
from ackscope.snapshot import Node, Overview, version_of
from diagnosis.preconditions import QUEUE_COUNTERS_SINCE
from exporter.broker.endpoints.queues import QueueKey
from exporter.broker.http_errors import not_metrics_error
from exporter.broker.prometheus.clients import CHANNEL_FAMILIES, ChannelFigures
from exporter.broker.prometheus.endpoint import MetricsEndpoint, NodeEndpoints
from exporter.broker.prometheus.exchanges import EXCHANGE_LIST_FAMILIES
from exporter.broker.prometheus.figures import (
    AGGREGATED,
    COARSE_FAMILIES,
    COMMAND_FAMILIES,
    DETAILED,
    QUEUE_SIZES,
    SIZE_FAMILIES,
    NodeFigures,
    decode_figures,
)
from exporter.broker.prometheus.publishes import PublishesReader
from exporter.broker.prometheus.settings import PrometheusSettings, SourceChoice

MANY_QUEUES = 2000
"""A node with at least this many queues is asked for sizes and sums only every `SIZES_SECONDS`, `SUMS_SECONDS`."""

SIZES_SECONDS, SUMS_SECONDS = 60.0, 15.0

MANY_CHANNELS, MOST_CHANNELS = 1000, 10_000
"""A node with at least so many channels is asked for them only every `SUMS_SECONDS`, and with more than so many never:
each has about fifteen rows, 25 us of the broker and 80 us of our own (4.3.6, one queue and one exchange a channel).
"""

_SIZES = frozenset(attribute for attribute, _ in QUEUE_SIZES.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsScrape:
    """One reading of all nodes.

    Attributes:
        nodes: what each node said.
        unread: node or address -> why it said nothing. Figures that are sums over nodes are then incomplete.
        channels_at: when the channels of all nodes were read; None if those of a node were not.
    """

    nodes: tuple[NodeFigures, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
    channels_at: Instant | None = None


@dataclass(slots=True)
class _Known:
    """One endpoint, and what of it is not read every time."""

    endpoint: MetricsEndpoint
    queues: int = 0
    sums: str = ""
    sums_at: float = float("-inf")
    sizes: Mapping[QueueKey, Mapping[str, Any]] = field(default_factory=dict)
    sizes_at: float = float("-inf")
    latest: NodeFigures | None = None
    channels: Mapping[str, ChannelFigures] | None = None
    channels_at: Instant | None = None


class MetricsReader:
    """Reads the endpoints of one cluster, one after another. It belongs to one thread at a time.

    Args:
        settings: the endpoints; without addresses, port 15692 of each known node.
        choice: which sources are read.
        management_host: host of the management API, which is a node's; None without one.
        clock: dates the readings.
        what: name of the settings in error messages, such as `clusters.shop.prometheus`.

    Raises:
        UsageError: invalid address.
        ConfigError: a file of the settings cannot be used.

    Attributes:
        answered: whether the latest reading that was wanted succeeded.
        publishes: reads from the same endpoints, in a thread of its own, which channel publishes to which exchange.
    """

    def __init__(
        self,
        settings: PrometheusSettings,
        choice: SourceChoice,
        management_host: str | None,
        clock: Clock,
        what: str = "prometheus",
    ) -> None:
        self._settings, self._choice, self._host = settings, choice, management_host
        self._clock, self._what = clock, what
        self._endpoints = NodeEndpoints(settings, management_host, what)
        self._known: dict[str, _Known] = {}
        self.answered = False
        self.publishes = PublishesReader(settings, management_host, clock, what)

    @property
    def alone(self) -> bool:
        """Whether no management API is read."""
        return self._host is None or self._choice is SourceChoice.PROMETHEUS

    @property
    def configured(self) -> bool:
        """Whether addresses are configured. Otherwise the endpoints may well not exist."""
        return bool(self._settings.urls)

    @property
    def cost(self) -> tuple[float, int, int]:
        """Seconds of broker time, requests and bytes so far."""
        return self._endpoints.cost

    def wanted(self, overview: Overview | None, *, native: bool = False) -> bool:
        """Whether to read the endpoints, given the latest overview of the management API.

        Figures that the management API has are not paid for twice.

        Args:
            overview: latest overview of the management API, if there is one.
            native: whether AMQP 1.0 clients are connected. The management API does not count their messages.
        """
        if self.alone or self._choice is SourceChoice.BOTH:
            return True
        if self._choice is not SourceChoice.AUTO:
            return False
        # Endpoints that nobody configured are not tried for a part of the figures.
        return self._keeps_none(overview) or (native and self.configured)

    def read(self, overview: Overview | None, nodes: Iterable[Node], *, native: bool = False) -> MetricsScrape:
        """Read all nodes. Where the management API has the other figures, only those of AMQP 1.0 clients are read.

        Args:
            overview: latest overview of the management API, if there is one.
            nodes: nodes that the management API lists.
            native: whether AMQP 1.0 clients are connected.

        Raises:
            BrokerError: no node could be read; the message is that of the first.
        """
        running = [node.name for node in nodes if node.running is not False]
        endpoints = self._endpoints.follow(overview, running)
        self._known = {url: self._known.get(url) or _Known(endpoint) for url, endpoint in endpoints.items()}
        if not self._known:
            self.answered = False
            raise BadAnswer(f"{self._what}.urls: no node is known yet; list the endpoints, such as http://host:15692")
        found: dict[str, NodeFigures] = {}
        unread: dict[str, str] = {}
        errors: list[BrokerError] = []
        whole = self.wanted(overview)
        families = COMMAND_FAMILIES if native else ()
        for known in self._known.values():
            try:
                figures = self._read_one(known, families) if whole else self._read_native(known, families)
                name = figures.node.name
                if running and name not in running:
                    raise BadAnswer(f"{known.endpoint.address.where}: {name}, which is no node of this cluster")
            except BrokerError as error:
                errors.append(error)
                unread[known.endpoint.address.where] = str(error)
            else:
                # Several addresses of one node, behind a load balancer, must not count twice.
                found[name] = figures
        self.answered = bool(found)
        if not found:
            raise errors[0].with_traceback(None)
        if not unread:
            expected = {*running, *(peer for each in found.values() for peer in each.peers if is_server(peer))}
            unread = dict.fromkeys(sorted(expected - set(found)), "no address of this node is configured")
        moments = [known.channels_at for known in self._known.values()]
        read_at = min((at for at in moments if at is not None), key=lambda at: at.mono, default=None)
        return MetricsScrape(
            nodes=tuple(found[name] for name in sorted(found)),
            unread=unread,
            channels_at=None if unread or None in moments else read_at,
        )

    def close(self) -> None:
        """Close all connections."""
        self._endpoints.close()
        self.publishes.close()

    @staticmethod
    def _keeps_none(overview: Overview | None) -> bool:
        return overview is not None and overview.statistics is False

    def _read_native(self, known: _Known, families: tuple[str, ...]) -> NodeFigures:
        """Read the totals of all clients, and the logs of quorum queues."""
        return _decoded(known, [known.endpoint.text(AGGREGATED), known.endpoint.text(DETAILED, families)])

    def _read_one(self, known: _Known, more: tuple[str, ...]) -> NodeFigures:
        now, many = self._clock.now().mono, known.queues >= MANY_QUEUES
        if not many or now - known.sums_at >= SUMS_SECONDS:
            known.sums, known.sums_at = known.endpoint.text(AGGREGATED), now
        with_sizes = not many or now - known.sizes_at >= SIZES_SECONDS
        with_channels = _channels_due(known, now)
        families = (
            *COARSE_FAMILIES,
            *more,
            *(EXCHANGE_LIST_FAMILIES if self.alone else ()),
            *(SIZE_FAMILIES if with_sizes else ()),
            *(CHANNEL_FAMILIES if with_channels else ()),
        )
        figures = _decoded(known, [known.sums, known.endpoint.text(DETAILED, families)], channels=with_channels)
        if with_channels:
            known.channels, known.channels_at = figures.channels, self._clock.now()
        elif not _has_readable_channels(figures):
            known.channels = known.channels_at = None
        figures = replace(figures, channels=known.channels)
        known.queues, known.latest = len(figures.queues), figures
        if with_sizes:
            known.sizes_at = now
            known.sizes = {key: _sizes(each.gauges) for key, each in figures.queues.items()} if many else {}
            return figures
        queues = {
            key: replace(each, gauges={**known.sizes.get(key, {}), **each.gauges})
            for key, each in figures.queues.items()
        }
        return replace(figures, queues=queues)


def _channels_due(known: _Known, now: float) -> bool:
    latest = known.latest
    if latest is None or not _has_readable_channels(latest):
        return False
    many = latest.totals.get("channels", 0) >= MANY_CHANNELS
    return not many or known.channels_at is None or now - known.channels_at.mono >= SUMS_SECONDS


def _has_readable_channels(figures: NodeFigures) -> bool:
    """Return whether channels are worth their rows: few enough, and at a version that counts messages by queue too."""
    version = version_of(figures.node.rabbitmq_version)
    count = figures.totals.get("channels")
    return count is not None and count <= MOST_CHANNELS and version is not None and version >= QUEUE_COUNTERS_SINCE


def _decoded(known: _Known, texts: list[str], *, channels: bool = False) -> NodeFigures:
    try:
        figures = decode_figures(texts, channels=channels)
    except ValueError:
        figures = None
    if figures is None:
        raise not_metrics_error(known.endpoint.address, DETAILED)
    return figures


def is_server(peer: str) -> bool:
    """Whether an Erlang node is a broker, and not a command line tool that joined the cluster briefly."""
    return not peer.startswith(("rabbitmqcli", "rabbit_cli", "rabbitmq-cli"))


def _sizes(gauges: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in gauges.items() if name in _SIZES}
