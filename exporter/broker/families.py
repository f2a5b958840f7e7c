"""The families of objects that are read from a broker: which endpoint, how it is got, how it is decoded."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, NamedTuple

from exporter.broker.channels import decode_channels
from exporter.broker.connections import decode_connections
from exporter.broker.consumers import decode_consumers
from exporter.broker.fields import Gaps, Version
from exporter.broker.health import decode_health
from exporter.broker.nodes import decode_nodes
from exporter.broker.overview import decode_overview
from exporter.broker.queues import decode_queues

Decode = Callable[[Any, Version | None], tuple[Any, Gaps]]
"""Pure: payload and version to kernel objects and gaps. Never raises, whatever the payload is."""


class How(StrEnum):
    """How the payload is got."""

    ONE = "one"
    PAGES = "pages"
    CHECKS = "checks"


class Family(NamedTuple):
    """One part of a snapshot."""

    path: str
    how: How
    decode: Decode


FAMILIES = {
    "overview": Family("/api/overview", How.ONE, decode_overview),
    "nodes": Family("/api/nodes", How.ONE, decode_nodes),
    # All fields of our Queue are in the basic list of every version; /api/queues/detailed (3.13+) adds none.
    "queues": Family("/api/queues", How.PAGES, decode_queues),
    "channels": Family("/api/channels", How.ONE, decode_channels),
    "consumers": Family("/api/consumers", How.ONE, decode_consumers),
    "connections": Family("/api/connections", How.ONE, decode_connections),
    "health": Family("/api/health/checks", How.CHECKS, decode_health),
}
"""In the order of `ackscope.snapshot.FAMILIES`. Paging costs the broker a full list for every page of channels and
connections (`rabbit_mgmt_util`), so that only queues are read in pages."""
