"""Reads one family of one broker, timed and decoded; what polling and one-shot commands share."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ackscope.clock import Clock, Instant
from ackscope.snapshot import Overview
from exporter.broker import fetch
from exporter.broker.client import ManagementClient
from exporter.broker.families import FAMILIES, How
from exporter.broker.fields import Version, version_of
from exporter.broker.settings import ManagementSettings

_VERSION_WAIT_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Reading:
    """One good reading.

    Attributes:
        at: when it was complete.
        seconds: how long it took, decoding included.
    """

    value: Any
    gaps: Mapping[str, int]
    at: Instant
    seconds: float


class Reader:
    """Reads families of one cluster, each from one thread at a time; different families side by side.

    Every family has its own connection, so that one that hangs holds up no other.
    """

    def __init__(self, settings: ManagementSettings, clock: Clock, what: str = "management") -> None:
        self._clock = clock
        self._clients = {name: ManagementClient(settings, what) for name in FAMILIES}
        self._health = fetch.HealthFetcher()
        self._version: Version | None = None
        self._overview_asked = threading.Event()

    @property
    def version(self) -> Version | None:
        """Version of the broker as the last overview told it."""
        return self._version

    def received(self, family: str) -> int:
        """Bytes of all answers of a family so far."""
        return self._clients[family].received

    def payload(self, family: str) -> Any:
        """What the broker sends for a family, not decoded.

        Raises:
            BrokerError: it could not be read.
        """
        path, how, _ = FAMILIES[family]
        client = self._clients[family]
        match how:
            case How.ONE:
                return fetch.one(client, path)
            case How.PAGES:
                return fetch.pages(client, path)
            case How.CHECKS:
                return self._health.fetch(client, path, self._version)

    def read(self, family: str) -> Reading:
        """Read and decode a family.

        Raises:
            BrokerError: it could not be read.
        """
        if family != "overview":
            # The version decides which checks exist. An overview that hangs must not hold up the others for long.
            self._overview_asked.wait(_VERSION_WAIT_SECONDS)
        began = self._clock.now()
        try:
            value, gaps = FAMILIES[family].decode(self.payload(family), self._version)
            if isinstance(value, Overview):
                self._version = version_of(value.rabbitmq_version) or self._version
        finally:
            if family == "overview":
                self._overview_asked.set()
        done = self._clock.now()
        return Reading(value=value, gaps=dict(gaps), at=done, seconds=done.since(began))

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            client.close()
