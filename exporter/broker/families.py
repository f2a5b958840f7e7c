"""The endpoint families that are polled: which endpoints, how they are fetched, how they are decoded."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, NamedTuple, TypeVar

from ackscope.clock import Instant
from exporter.broker.endpoints.auth import decode_auth
from exporter.broker.endpoints.bindings import decode_bindings
from exporter.broker.endpoints.channels import decode_channels
from exporter.broker.endpoints.connections import decode_connections
from exporter.broker.endpoints.consumers import decode_consumers
from exporter.broker.endpoints.exchanges import decode_exchanges
from exporter.broker.endpoints.features import decode_features
from exporter.broker.endpoints.health import decode_health
from exporter.broker.endpoints.limits import decode_limits
from exporter.broker.endpoints.links import decode_links
from exporter.broker.endpoints.memory import decode_memory
from exporter.broker.endpoints.nodes import decode_nodes
from exporter.broker.endpoints.overview import decode_overview
from exporter.broker.endpoints.policies import decode_policies
from exporter.broker.endpoints.queues import decode_queues
from exporter.broker.endpoints.sessions import decode_sessions
from exporter.broker.endpoints.streams import decode_streams
from exporter.broker.endpoints.vhosts import decode_vhosts
from exporter.broker.fields import Gaps, Version

T = TypeVar("T")

Decode = Callable[[object, Version | None], tuple[Any, Gaps]]
"""Pure function from payload and version to kernel objects and gaps. Never raises, for any payload."""


@dataclass(frozen=True, slots=True)
class FamilyReading(Generic[T]):
    """One successful reading of a family.

    Attributes:
        at: when the reading was complete.
        seconds: duration of the reading, including decoding.
    """

    value: T
    gaps: Mapping[str, int]
    at: Instant
    seconds: float


class FetchMode(StrEnum):
    """How a payload is fetched, which determines its form.

    SINGLE: the answer of one endpoint. PAGED: all objects of a paged list. HEALTH_CHECKS: check name -> answer.
    MULTIPLE: endpoint -> answer, without endpoints that the broker does not have (404).
    PER_NODE: node -> answer; the endpoint contains `{node}`.
    PER_CONNECTION: connection -> answer, for some AMQP 1.0 connections; the endpoint contains `{name}`.
    METRICS: the figures of all nodes, from their Prometheus endpoints.
    """

    SINGLE = "single"
    PAGED = "paged"
    HEALTH_CHECKS = "health_checks"
    MULTIPLE = "multiple"
    PER_NODE = "per_node"
    PER_CONNECTION = "per_connection"
    METRICS = "metrics"


class EndpointFamily(NamedTuple):
    """One part of a snapshot.

    Attributes:
        paths: its endpoints; exactly one unless MULTIPLE.
        min_interval: shortest time between two readings, in seconds; longer for families that rarely change.
        weight: relative weight when the budget is divided; highest for families that most rules depend on.
        min_share: guaranteed part of the budget (0 to 1), however expensive the other families are.
        cost_follows_size: whether a short answer is cheap for the broker.
        idle_interval: shortest time between two readings of an idle broker, in seconds. A cheap family is read at
            least as often as the queues, because it describes them.
        on_suspicion: read only while what was read elsewhere asks for it.
        plugin: plugin that answers; without it at any node nothing is requested, because each request would be an error
            in a log.
    """

    paths: tuple[str, ...]
    mode: FetchMode
    decode: Decode
    min_interval: float = 0.0
    weight: float = 1.0
    min_share: float = 0.0
    cost_follows_size: bool = True
    idle_interval: float = 0.0
    on_suspicion: bool = False
    plugin: str | None = None


# One eighth remains for the rest: configuration rarely changes and rarely explains current problems.
_QUEUES_MIN_SHARE, _CLIENTS_MIN_SHARE = 3 / 8, 1 / 6

_5_S, _10_S, _15_S, _30_S, _1_MIN = 5.0, 10.0, 15.0, 30.0, 60.0
# No longer than this, because no rule uses a reading that is older than five minutes.
_4_MIN = 240.0

FAMILIES = {
    "overview": EndpointFamily(("/api/overview",), FetchMode.SINGLE, decode_overview),
    "nodes": EndpointFamily(("/api/nodes",), FetchMode.SINGLE, decode_nodes),
    # In every version the basic list has all fields of our Queue; /api/queues/detailed (3.13+) adds none.
    "queues": EndpointFamily(
        ("/api/queues",), FetchMode.PAGED, decode_queues, weight=12.0, min_share=_QUEUES_MIN_SHARE
    ),
    "channels": EndpointFamily(
        ("/api/channels",), FetchMode.SINGLE, decode_channels, weight=4.0, min_share=_CLIENTS_MIN_SHARE
    ),
    "consumers": EndpointFamily(
        ("/api/consumers",), FetchMode.SINGLE, decode_consumers, weight=4.0, min_share=_CLIENTS_MIN_SHARE
    ),
    "connections": EndpointFamily(
        ("/api/connections",), FetchMode.SINGLE, decode_connections, weight=4.0, min_share=_CLIENTS_MIN_SHARE
    ),
    # Read after the connections, which name those that have sessions; without AMQP 1.0 clients it requests nothing.
    "sessions": EndpointFamily(
        ("/api/connections/{name}/sessions",), FetchMode.PER_CONNECTION, decode_sessions, _5_S, weight=4.0
    ),
    "streams": EndpointFamily(
        ("/api/stream/consumers", "/api/stream/publishers"),
        FetchMode.MULTIPLE,
        decode_streams,
        _15_S,
        plugin="rabbitmq_stream_management",
    ),
    "health": EndpointFamily(("/api/health/checks",), FetchMode.HEALTH_CHECKS, decode_health),
    "exchanges": EndpointFamily(("/api/exchanges",), FetchMode.SINGLE, decode_exchanges, _15_S, idle_interval=_30_S),
    "bindings": EndpointFamily(("/api/bindings",), FetchMode.SINGLE, decode_bindings, _15_S, idle_interval=_4_MIN),
    "vhosts": EndpointFamily(("/api/vhosts",), FetchMode.SINGLE, decode_vhosts, _15_S, idle_interval=_1_MIN),
    "policies": EndpointFamily(
        ("/api/policies", "/api/operator-policies"),
        FetchMode.MULTIPLE,
        decode_policies,
        _30_S,
        idle_interval=_1_MIN,
    ),
    "limits": EndpointFamily(
        ("/api/vhost-limits", "/api/user-limits"), FetchMode.MULTIPLE, decode_limits, _30_S, idle_interval=_1_MIN
    ),
    "links": EndpointFamily(
        ("/api/shovels", "/api/federation-links"), FetchMode.MULTIPLE, decode_links, _15_S, idle_interval=_30_S
    ),
    "features": EndpointFamily(
        ("/api/feature-flags", "/api/deprecated-features", "/api/deprecated-features/used"),
        FetchMode.MULTIPLE,
        decode_features,
        _30_S,
        idle_interval=_1_MIN,
    ),
    "auth": EndpointFamily(
        ("/api/auth/attempts/{node}",), FetchMode.PER_NODE, decode_auth, _15_S, idle_interval=_1_MIN
    ),
    # Costs 22 ms at 1,000 queues and 0.1 s at 10,000 (4.3), ten times as much as all families of every round.
    "memory": EndpointFamily(
        ("/api/nodes/{node}/memory",),
        FetchMode.PER_NODE,
        decode_memory,
        _1_MIN,
        cost_follows_size=False,
        idle_interval=_4_MIN,
    ),
}
"""Family name -> its endpoints, in the order of `ackscope.snapshot.FAMILIES`.

Only queues are paged: for every page of channels or connections the broker builds the full list (`rabbit_mgmt_util`).
"""

METRICS = "prometheus"
"""Name of the second source among the families that are polled. Its figures are joined into the other parts."""

PUBLISHES = "exchange_publishes"
"""Name of the family that tells which channel publishes to which exchange, from the second source too."""


def _as_read(payload: object, _version: Version | None) -> tuple[Any, Gaps]:
    return payload, Gaps()


POLLED = {
    **{name: FAMILIES[name] for name in ("overview", "nodes")},
    # Before the queues, whose settings are read in another way if their figures come from here.
    METRICS: EndpointFamily(
        ("/metrics", "/metrics/detailed"), FetchMode.METRICS, _as_read, weight=12.0, min_share=1 - 7 / 8
    ),
    **{name: family for name, family in FAMILIES.items() if name not in {"overview", "nodes"}},
    PUBLISHES: EndpointFamily(("/metrics/detailed",), FetchMode.METRICS, _as_read, _10_S, on_suspicion=True),
}
"""The families of the management API and the second source, in the order in which they are read."""

FAST = tuple(name for name, family in FAMILIES.items() if not family.min_interval)
"""Families that are due in every round. Rules depend on them; if all of them fail, the broker is unreachable."""
