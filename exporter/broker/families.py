"""The families of objects that are read from a broker: which endpoints, how they are got, how they are decoded."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, NamedTuple

from exporter.broker.auth import decode_auth
from exporter.broker.bindings import decode_bindings
from exporter.broker.channels import decode_channels
from exporter.broker.connections import decode_connections
from exporter.broker.consumers import decode_consumers
from exporter.broker.exchanges import decode_exchanges
from exporter.broker.features import decode_features
from exporter.broker.fields import Gaps, Version
from exporter.broker.health import decode_health
from exporter.broker.limits import decode_limits
from exporter.broker.links import decode_links
from exporter.broker.memory import decode_memory
from exporter.broker.nodes import decode_nodes
from exporter.broker.overview import decode_overview
from exporter.broker.policies import decode_policies
from exporter.broker.queues import decode_queues
from exporter.broker.vhosts import decode_vhosts

Decode = Callable[[Any, Version | None], tuple[Any, Gaps]]
"""Pure: payload and version to kernel objects and gaps. Never raises, whatever the payload is."""


class How(StrEnum):
    """How the payload is got, and so what it is.

    ONE: the answer of one endpoint. PAGES: all objects of a list. CHECKS: check name -> answer.
    SEVERAL: endpoint -> answer; an endpoint that the broker does not have (404) is left out.
    NODES: node -> answer; the endpoint has `{node}` in it.
    """

    ONE = "one"
    PAGES = "pages"
    CHECKS = "checks"
    SEVERAL = "several"
    NODES = "nodes"


class Family(NamedTuple):
    """One part of a snapshot.

    Attributes:
        paths: its endpoints; one, but for SEVERAL.
        every: the shortest time between two readings, in seconds; what changes seldom is not asked often.
        weight: how much of a scarce budget it gets beside others: what most verdicts rest on comes first.
        least: the part of the budget that it gets, if it wants it, however dear all others are.
        plain: what it costs the broker grows with its answer, and is little where that is short.
        calm: the shortest time while nothing moves on the broker, in seconds, where a reading is dear; where it is
            not, no longer than between two readings of the queues, which it says something of.
    """

    paths: tuple[str, ...]
    how: How
    decode: Decode
    every: float = 0.0
    weight: float = 1.0
    least: float = 0.0
    plain: bool = True
    calm: float = 0.0


_QUEUES, _CLIENTS = 3 / 8, 1 / 6
"""An eighth is left for the rest: what is configured changes seldom, and says little of what goes wrong now."""

_SOON = 15.0
_LATER = 30.0
_SELDOM = 60.0
_RARELY = 240.0
"""Not more: a verdict rests on no reading that is older than five minutes."""

FAMILIES = {
    "overview": Family(("/api/overview",), How.ONE, decode_overview),
    "nodes": Family(("/api/nodes",), How.ONE, decode_nodes),
    # All fields of our Queue are in the basic list of every version; /api/queues/detailed (3.13+) adds none.
    "queues": Family(("/api/queues",), How.PAGES, decode_queues, weight=12.0, least=_QUEUES),
    "channels": Family(("/api/channels",), How.ONE, decode_channels, weight=4.0, least=_CLIENTS),
    "consumers": Family(("/api/consumers",), How.ONE, decode_consumers, weight=4.0, least=_CLIENTS),
    "connections": Family(("/api/connections",), How.ONE, decode_connections, weight=4.0, least=_CLIENTS),
    "health": Family(("/api/health/checks",), How.CHECKS, decode_health),
    "exchanges": Family(("/api/exchanges",), How.ONE, decode_exchanges, _SOON, calm=_LATER),
    "bindings": Family(("/api/bindings",), How.ONE, decode_bindings, _SOON, calm=_RARELY),
    "vhosts": Family(("/api/vhosts",), How.ONE, decode_vhosts, _SOON, calm=_SELDOM),
    "policies": Family(("/api/policies", "/api/operator-policies"), How.SEVERAL, decode_policies, _LATER, calm=_SELDOM),
    "limits": Family(("/api/vhost-limits", "/api/user-limits"), How.SEVERAL, decode_limits, _LATER, calm=_SELDOM),
    "links": Family(("/api/shovels", "/api/federation-links"), How.SEVERAL, decode_links, _SOON, calm=_LATER),
    "features": Family(
        ("/api/feature-flags", "/api/deprecated-features", "/api/deprecated-features/used"),
        How.SEVERAL,
        decode_features,
        _LATER,
        calm=_SELDOM,
    ),
    "auth": Family(("/api/auth/attempts/{node}",), How.NODES, decode_auth, _SOON, calm=_SELDOM),
    # 22 ms at 1,000 queues and 0.1 s at 10,000 (4.3), where all that is asked every round takes a tenth of that.
    "memory": Family(("/api/nodes/{node}/memory",), How.NODES, decode_memory, _SELDOM, plain=False, calm=_RARELY),
}
"""In the order of `ackscope.snapshot.FAMILIES`. Paging costs the broker a full list for every page of channels and
connections (`rabbit_mgmt_util`), so that only queues are read in pages."""

FAST = tuple(name for name, family in FAMILIES.items() if not family.every)
"""What is read in every round: verdicts rest on it, and where all of it fails the broker is away."""
