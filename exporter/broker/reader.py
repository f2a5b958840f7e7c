"""Reads, times and decodes single families of one broker. Polling and one-shot commands share it."""

import threading
import time
from collections.abc import Collection
from dataclasses import replace
from typing import Any, NamedTuple

from ackscope.clock import Clock, Instant
from ackscope.errors import BrokerError
from ackscope.failures import FailurePhrase
from ackscope.past import ClusterPast
from ackscope.snapshot import Node, Overview, version_of
from exporter.broker.amqp_sessions import AmqpSessions
from exporter.broker.client import ManagementClient
from exporter.broker.clock_offset import ClockOffset
from exporter.broker.cluster_history import PastReader
from exporter.broker.cost_model import RttEstimator
from exporter.broker.credentials import Credentials, credentials_from
from exporter.broker.endpoints.queues import QueueKey
from exporter.broker.families import FAMILIES, METRICS, POLLED, PUBLISHES, FamilyReading, FetchMode
from exporter.broker.fetch import (
    UNRESPONSIVE_RETRY_SECONDS,
    fetch_multiple,
    fetch_pages,
    fetch_per_connection,
    fetch_per_node,
    is_error,
    require_nodes,
)
from exporter.broker.fields import Version
from exporter.broker.health_poller import HealthPoller
from exporter.broker.prometheus.merge import FigureMerger
from exporter.broker.prometheus.reader import MetricsReader, MetricsScrape
from exporter.broker.queue_reader import (
    MANY_QUEUES,
    QueueBudget,
    QueueHints,
    QueueMode,
    QueueReader,
    QueuesReading,
)
from exporter.broker.session import connection_pool
from exporter.broker.settings import ManagementSettings

_PREREQUISITE_WAIT_SECONDS = 1.0

_NATIVE_SINCE: Version = (4, 0)
"""The first version with AMQP 1.0 of its own."""

_CONSTANT_SIZE = ("overview", "nodes")
"""Families whose answer does not grow with the broker. Their timeout is not adaptive, so they reveal a hang."""


class PollCost(NamedTuple):
    """Accumulated cost of polling one family.

    Attributes:
        seconds: broker time, from each request to the end of its answer, less the round trip; failures included.
        requests: number of requests.
        received: bytes of all answers.
    """

    seconds: float
    requests: int
    received: int


class BrokerReader:
    """Reads families of one cluster. Different families may be read concurrently, each from one thread at a time.

    Families share connections but never wait for each other.

    Args:
        settings: how to reach it.
        clock: timestamps of readings.
        what: name of the settings in error messages, such as `clusters.shop.management`.
        credentials: shared with other readers of the same settings; by default its own.
        metrics: reads the Prometheus endpoints of the nodes; None if they are not a source. If it is the only source,
            the settings are those of any of these endpoints, and no other family is read.

    Attributes:
        queues: reads the queues within a budget; `read` always reads them in full.
        metrics: as given.
        merger: joins the figures of the endpoints with the other parts.
        check_max_age: seconds for which a health check that passed is not polled again.
    """

    def __init__(
        self,
        settings: ManagementSettings,
        clock: Clock,
        what: str = "management",
        credentials: Credentials | None = None,
        metrics: MetricsReader | None = None,
    ) -> None:
        self._clock = clock
        self.metrics = metrics
        self.merger = FigureMerger(alone=metrics is not None and metrics.alone)
        # Shared, so that all connections use the same token.
        shared = credentials_from(settings, what) if credentials is None else credentials
        rtt, connections = RttEstimator(), connection_pool(len(FAMILIES))
        self._clock_offset = offset = ClockOffset()
        self._clients = {name: ManagementClient(settings, what, shared, rtt, connections, offset) for name in FAMILIES}
        self.queues = QueueReader(self._clients["queues"], clock)
        self._health = HealthPoller()
        self._past = PastReader()
        self.check_max_age = 0.0
        self._version: Version | None = None
        self._overview: Overview | None = None
        self._nodes: tuple[str, ...] = ()
        self._nodes_at: Instant | None = None
        self._nodes_failure: BrokerError | None = None
        self._sessions = AmqpSessions()
        self._timeout = settings.timeout
        # Family -> node that did not answer -> when it is retried (monotonic clock).
        self._retry_at: dict[str, dict[str, float]] = {}
        self._prerequisites_deadline: float | None = None
        self._overview_attempted = threading.Event()
        self._nodes_attempted = threading.Event()
        self._connections_attempted = threading.Event()
        self._metrics_attempted = threading.Event()
        self._node_records: tuple[Node, ...] = ()

    @property
    def families(self) -> tuple[str, ...]:
        """The families that there is a source for."""
        if self.metrics is None:
            return tuple(FAMILIES)
        return (METRICS,) if self.metrics.alone else tuple(POLLED)

    @property
    def settings_listed(self) -> bool:
        """Whether the latest list of queues has the settings of all of them, and not only of some."""
        return self.queues.mode is not QueueMode.TOTALS

    @property
    def version(self) -> Version | None:
        """Version of the broker in the latest overview."""
        return self._version

    def cost(self, family: str) -> PollCost:
        """Return the accumulated cost of polling a family."""
        if family == METRICS:
            return PollCost(*(self.metrics.cost if self.metrics is not None else (0.0, 0, 0)))
        if family == PUBLISHES:
            return PollCost(*(self.metrics.publishes.cost if self.metrics is not None else (0.0, 0, 0)))
        client = self._clients[family]
        return PollCost(client.seconds, client.requests, client.received)

    def payload(self, family: str) -> Any:
        """Return the undecoded answer of the broker for a family.

        Raises:
            BrokerError: the family could not be read.
        """
        if family == METRICS:
            return self._scrape()
        if family == PUBLISHES:
            return None if self.metrics is None else self.metrics.publishes.read(self._overview, self._node_records)
        paths, mode, *_, plugin = FAMILIES[family]
        client = self._clients[family]
        if plugin is not None:
            require_nodes(client, paths[0], self._node_records)
            if not self._has_plugin(plugin):
                if self._nodes_failure is not None:
                    # What is enabled now is unknown.
                    raise self._nodes_failure.with_traceback(None)
                return {}
        match mode:
            case FetchMode.SINGLE:
                return client.get(paths[0], adaptive=family not in _CONSTANT_SIZE)
            case FetchMode.PAGED:
                return fetch_pages(client, paths[0])
            case FetchMode.HEALTH_CHECKS:
                return self._health.poll(client, paths[0], self._version, self.check_max_age)
            case FetchMode.MULTIPLE:
                return fetch_multiple(client, paths)
            case FetchMode.PER_NODE:
                return self._fetch_per_node(family, client, paths[0])
            case FetchMode.PER_CONNECTION:
                return fetch_per_connection(client, paths[0], self._sessions.due(self._version))

    def _has_plugin(self, plugin: str) -> bool:
        return any(plugin in (node.plugins or ()) for node in self._node_records)

    def _scrape(self) -> MetricsScrape | None:
        """Read the Prometheus endpoints; None if the management API has all figures."""
        metrics = self.metrics
        # Before 4.0 an AMQP 1.0 session is a channel, with the counters of one.
        native = self._sessions.any_native and (self._version is None or self._version >= _NATIVE_SINCE)
        if metrics is None or not metrics.wanted(self._overview, native=native):
            return None
        return metrics.read(self._overview, self._node_records, native=native)

    def _fetch_per_node(self, family: str, client: ManagementClient, path: str) -> dict[str, Any]:
        """Fetch the answer of each node. A silent node is then skipped for a while: an attempt costs a full timeout."""
        now = self._clock.now().mono
        skipped = {node: retry_at for node, retry_at in self._retry_at.get(family, {}).items() if retry_at > now}
        requested = [node for node in self._nodes if node not in skipped] or list(self._nodes)
        answers = fetch_per_node(client, path, requested)
        failed = {node: now + UNRESPONSIVE_RETRY_SECONDS for node, answer in answers.items() if is_error(answer)}
        self._retry_at[family] = {**skipped, **failed}
        error = {
            "error": f"{FailurePhrase.NO_ANSWER} the last {UNRESPONSIVE_RETRY_SECONDS:g} s; "
            f"retried every {UNRESPONSIVE_RETRY_SECONDS:g} s"
        }
        return {node: answers.get(node, error) for node in self._nodes if node in answers or node not in requested}

    def read(self, family: str) -> FamilyReading[Any]:
        """Read and decode a family.

        Raises:
            BrokerError: the family could not be read.
        """
        self._await_prerequisites(family)
        return self._read(family)

    def _read(self, family: str) -> FamilyReading[Any]:
        began = self._clock.now()
        try:
            value, gaps = POLLED[family].decode(self.payload(family), self._version)
            past = self._read_past(value, began) if isinstance(value, Overview) else None
            # Together, as our clock may be set at any time.
            done, value = self._clock.now(), self._clock_offset.in_our_time(family, value)
            if isinstance(value, Overview):
                self._overview = value = replace(value, clock_offset=self._clock_offset.seconds, past=past)
                self._version = version_of(value.rabbitmq_version) or self._version
            if family == "nodes":
                self._nodes, self._node_records = tuple(node.name for node in value if node.running), value
                self._nodes_at, self._nodes_failure = done, None
            if family == "connections":
                self._sessions.listed(value, done)
            if family == "sessions":
                value = self._sessions.merged(value, done)
        except BrokerError as error:
            if family == "connections":
                self._sessions.not_listed(error)
            if family == "nodes":
                self._nodes_failure = error
            raise
        finally:
            if family == "overview":
                self._overview_attempted.set()
            if family == "nodes":
                self._nodes_attempted.set()
            if family == "connections":
                self._connections_attempted.set()
            if family == METRICS:
                self._metrics_attempted.set()
        return FamilyReading(value=value, gaps=dict(gaps), at=self._known_at(family, done), seconds=done.since(began))

    def _read_past(self, overview: Overview, now: Instant) -> ClusterPast | None:
        if overview.statistics is False or overview.node is None:
            # It has no samples, or the user may not see nodes.
            return None
        return self._past.read(self._clients["overview"], now.mono, self._clock_offset.seconds or 0.0)

    def _known_at(self, family: str, done: Instant) -> Instant:
        """Return the time of a reading; if nothing had to be requested, that of the list which says so."""
        plugin = POLLED[family].plugin
        if plugin is not None and self._nodes_at is not None and not self._has_plugin(plugin):
            return self._nodes_at
        return self._sessions.known_at(done) if family == "sessions" else done

    def queue_hints(self, redelivering: Collection[QueueKey] = ()) -> QueueHints:
        """Return the hints about queues from the latest overview, with the given redelivering queues."""
        overview = self._overview
        # With figures from elsewhere, the list is read for the settings of the queues, which totals do not have.
        joined = self.metrics is not None and self.metrics.answered
        return QueueHints(
            queue_count=overview.queues if overview else None,
            statistics=overview.statistics if overview and not joined else None,
            redelivering=redelivering,
        )

    def step_queues(self, budget: QueueBudget, redelivering: Collection[QueueKey] = ()) -> QueuesReading | None:
        """Do the next step of reading the queues; see `QueueReader.step`.

        Args:
            budget: limits on its cost.
            redelivering: queues whose channels redelivered messages.

        Raises:
            BrokerError: the list of queues could not be read.
        """
        self._await_prerequisites("queues")
        return self.queues.step(budget, self.queue_hints(redelivering), self._version)

    def read_queues_once(self, suspects_seconds: float) -> QueuesReading:
        """Read the queues in full, or on a large broker totals and statistics of the most suspicious ones.

        Raises:
            BrokerError: the list of queues could not be read.
        """
        self._await_prerequisites("queues")
        hints = self.queue_hints()
        if (hints.queue_count or 0) >= MANY_QUEUES or hints.statistics is False:
            reading = self.queues.read_once(self._version, suspects_seconds, statistics=hints.statistics is not False)
            if reading is not None:
                return reading
        return self._read("queues")

    def close(self) -> None:
        """Close all connections of the management API. The endpoints belong to whoever made `metrics`."""
        for client in self._clients.values():
            client.close()

    def _await_prerequisites(self, family: str) -> None:
        """Wait for the version, which decides which fields and checks exist, and for names of nodes and connections.

        The wait is short: if overview or nodes hang, they must not delay the other families.
        """
        if self._prerequisites_deadline is None:
            self._prerequisites_deadline = time.monotonic() + _PREREQUISITE_WAIT_SECONDS
        if self.metrics is not None and self.metrics.alone:
            return
        if family != "overview":
            self._overview_attempted.wait(max(0.0, self._prerequisites_deadline - time.monotonic()))
        metrics, overview = self.metrics, self._overview
        if family == "queues" and metrics is not None and overview is not None and metrics.wanted(overview):
            self._metrics_attempted.wait(self._timeout)
        if POLLED[family].plugin is not None or POLLED[family].mode in {FetchMode.PER_NODE, FetchMode.METRICS}:
            self._nodes_attempted.wait(max(0.0, self._prerequisites_deadline - time.monotonic()))
        if POLLED[family].mode is FetchMode.PER_CONNECTION or (family == METRICS and metrics and metrics.configured):
            # The list of connections is long on some brokers. Without it, no AMQP 1.0 client would be known.
            self._connections_attempted.wait(self._timeout)
