"""Reads one family of one broker, timed and decoded; what polling and one-shot commands share."""

import threading
import time
from collections.abc import Collection
from typing import Any, NamedTuple

from ackscope.clock import Clock
from ackscope.snapshot import Overview
from exporter.broker import fetch
from exporter.broker.checking import HealthFetcher
from exporter.broker.client import ManagementClient
from exporter.broker.credentials import Credentials, credentials_of
from exporter.broker.families import FAMILIES, How
from exporter.broker.fields import Version, version_of
from exporter.broker.queue_reading import LARGE, Allowance, Hints, QueueReader
from exporter.broker.queue_store import Key
from exporter.broker.reading import Reading
from exporter.broker.session import open_connections
from exporter.broker.settings import ManagementSettings
from exporter.broker.way import Way

_VERSION_WAIT_SECONDS = 1.0

_SHORT = ("overview", "nodes")
"""Families whose one answer does not grow with what the broker holds: by them one sees that it hangs."""


class Spent(NamedTuple):
    """What asking for one family has cost so far.

    Attributes:
        seconds: of the broker's time: from each request to the end of its answer, less the way; failures too.
        requests: how many there were.
        received: bytes of all answers.
    """

    seconds: float
    requests: int
    received: int


class Reader:
    """Reads families of one cluster, each from one thread at a time; different families side by side.

    Families share connections and wait for none: one that hangs holds up no other.

    Args:
        settings: how to reach it.
        clock: dates readings.
        what: how to call the settings in a message, such as `clusters.shop.management`.
        credentials: to share with other readers of the same settings; its own without.

    Attributes:
        queues: reads the queues at what a budget allows; `read` always reads them in full.
        checks_good_for: seconds for which a health check that passed is not asked anew.
    """

    def __init__(
        self,
        settings: ManagementSettings,
        clock: Clock,
        what: str = "management",
        credentials: Credentials | None = None,
    ) -> None:
        self._clock = clock
        # One for all, so that many connections ask for one token.
        shared = credentials_of(settings, what) if credentials is None else credentials
        way, connections = Way(), open_connections(len(FAMILIES))
        self._clients = {name: ManagementClient(settings, what, shared, way, connections) for name in FAMILIES}
        self.queues = QueueReader(self._clients["queues"], clock)
        self._health = HealthFetcher()
        self.checks_good_for = 0.0
        self._version: Version | None = None
        self._overview: Overview | None = None
        self._nodes: tuple[str, ...] = ()
        self._silent: dict[str, dict[str, float]] = {}
        self._patience_ends: float | None = None
        self._overview_asked = threading.Event()
        self._nodes_asked = threading.Event()

    @property
    def version(self) -> Version | None:
        """Version of the broker as the last overview told it."""
        return self._version

    def spent(self, family: str) -> Spent:
        """What a family has cost so far."""
        client = self._clients[family]
        return Spent(client.seconds, client.requests, client.received)

    def payload(self, family: str) -> Any:
        """What the broker sends for a family, not decoded.

        Raises:
            BrokerError: it could not be read.
        """
        paths, how, *_ = FAMILIES[family]
        client = self._clients[family]
        match how:
            case How.ONE:
                return fetch.one(client, paths[0], patient=family not in _SHORT)
            case How.PAGES:
                return fetch.pages(client, paths[0])
            case How.CHECKS:
                return self._health.fetch(client, paths[0], self._version, self.checks_good_for)
            case How.SEVERAL:
                return fetch.several(client, paths)
            case How.NODES:
                return self._by_node(family, client, paths[0])

    def _by_node(self, family: str, client: ManagementClient, path: str) -> dict[str, Any]:
        """Node -> answer. One that did not answer is left alone for a while: each time costs a whole time limit."""
        now = self._clock.now().mono
        silent = {node: until for node, until in self._silent.get(family, {}).items() if until > now}
        asked = [node for node in self._nodes if node not in silent] or list(self._nodes)
        answers = fetch.by_node(client, path, asked)
        failed = {node: now + fetch.SILENT_SECONDS for node, answer in answers.items() if _is_error(answer)}
        self._silent[family] = {**silent, **failed}
        skipped = {"error": f"no answer lately; it is asked every {fetch.SILENT_SECONDS:g} s"}
        return {node: answers.get(node, skipped) for node in self._nodes if node in answers or node not in asked}

    def read(self, family: str) -> Reading:
        """Read and decode a family.

        Raises:
            BrokerError: it could not be read.
        """
        self._await_what_it_needs(family)
        return self._read(family)

    def _read(self, family: str) -> Reading:
        began = self._clock.now()
        try:
            value, gaps = FAMILIES[family].decode(self.payload(family), self._version)
            if isinstance(value, Overview):
                self._overview = value
                self._version = version_of(value.rabbitmq_version) or self._version
            if family == "nodes":
                self._nodes = tuple(node.name for node in value if node.running)
        finally:
            if family == "overview":
                self._overview_asked.set()
            if family == "nodes":
                self._nodes_asked.set()
        done = self._clock.now()
        return Reading(value=value, gaps=dict(gaps), at=done, seconds=done.since(began))

    def hints(self, named: Collection[Key] = ()) -> Hints:
        """What the last overview tells of the queues, beside those that are named for a sign of redelivery."""
        told = self._overview
        return Hints(expected=told.queues if told else None, statistics=told.statistics if told else None, named=named)

    def step_queues(self, allowance: Allowance, named: Collection[Key] = ()) -> Reading | None:
        """Read of the queues what is due; see `QueueReader.step`.

        Args:
            allowance: what it may cost.
            named: queues that consumers or channels give a sign of redelivery for.

        Raises:
            BrokerError: the list of all queues could not be read.
        """
        self._await_what_it_needs("queues")
        return self.queues.step(allowance, self.hints(named), self._version)

    def look_at_queues(self, suspects_seconds: float) -> Reading:
        """One look at the queues: in full, or on a large broker totals, and statistics of the most suspicious.

        Raises:
            BrokerError: the list of all queues could not be read.
        """
        self._await_what_it_needs("queues")
        told = self.hints()
        if (told.expected or 0) >= LARGE or told.statistics is False:
            reading = self.queues.look(self._version, suspects_seconds, statistics=told.statistics is not False)
            if reading is not None:
                return reading
        return self._read("queues")

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            client.close()

    def _await_what_it_needs(self, family: str) -> None:
        """The version decides which fields and checks exist, the nodes what some are asked about.

        One that hangs must not hold up the others for long.
        """
        if self._patience_ends is None:
            self._patience_ends = time.monotonic() + _VERSION_WAIT_SECONDS
        if family != "overview":
            self._overview_asked.wait(max(0.0, self._patience_ends - time.monotonic()))
        if FAMILIES[family].how is How.NODES:
            self._nodes_asked.wait(max(0.0, self._patience_ends - time.monotonic()))


def _is_error(answer: Any) -> bool:
    return isinstance(answer, dict) and "error" in answer
