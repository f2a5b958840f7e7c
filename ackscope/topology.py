"""Other objects of a broker: exchanges, bindings, policies, links, features and so on.

As in `ackscope.snapshot`, absent is None.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ackscope.counters import MessageStats


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One exchange (`/api/exchanges`); the default one has the name ""."""

    vhost: str
    name: str
    type: str | None = None
    durable: bool | None = None
    auto_delete: bool | None = None
    internal: bool | None = None
    policy: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    stats: MessageStats = field(default_factory=MessageStats)

    @property
    def key(self) -> tuple[str, str]:
        """The identity of an exchange: virtual host and name."""
        return (self.vhost, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """One binding (`/api/bindings`). Those of the default exchange are left out, because every queue has one.

    Attributes:
        destination_type: queue or exchange.
    """

    vhost: str
    source: str
    destination: str
    destination_type: str
    routing_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bindings:
    """The bindings of all exchanges.

    Attributes:
        counts: number of bindings from each (virtual host, exchange), including the default exchange.
        listed: all bindings; None if there are too many to keep.
    """

    counts: Mapping[tuple[str, str], int] = field(default_factory=dict)
    listed: tuple[Binding, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VHost:
    """One virtual host (`/api/vhosts`).

    Attributes:
        cluster_state: node -> running, stopped, ...
    """

    name: str
    description: str | None = None
    default_queue_type: str | None = None
    tracing: bool | None = None
    protected_from_deletion: bool | None = None
    cluster_state: Mapping[str, str] = field(default_factory=dict)
    messages: int | None = None
    messages_ready: int | None = None
    messages_unacked: int | None = None
    recv_oct: int | None = None
    send_oct: int | None = None
    stats: MessageStats = field(default_factory=MessageStats)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One policy or operator policy (`/api/policies`, `/api/operator-policies`)."""

    vhost: str
    name: str
    pattern: str | None = None
    apply_to: str | None = None
    priority: int | None = None
    definition: Mapping[str, Any] = field(default_factory=dict)
    operator: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One limit of a virtual host or user (`/api/vhost-limits`, `/api/user-limits`).

    Attributes:
        scope: vhost or user.
        subject: name of the virtual host or user.
        name: max-connections, max-channels, max-queues.
        value: negative means no limit.
    """

    scope: str
    subject: str
    name: str
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One shovel or federation link (`/api/shovels`, `/api/federation-links`).

    Attributes:
        kind: shovel or federation.
        type: static or dynamic for shovels; exchange or queue for federation links.
        state: as reported by the broker: running, starting, terminated, blocked, ...
        reason: the broker's text about a failure, without credentials.
        upstream: name of the upstream, for federation links.
        local: the exchange or queue that a federation link serves.
        source, destination: addresses of a shovel, without credentials.
        source_queue, source_exchange: queue or exchange that a link takes messages from.
        source_key: binding key of a shovel that takes from an exchange.
        target_queue, target_exchange, target_key: where a shovel publishes to: a queue, or an exchange with a key.
        forwarded: messages that a shovel sent to its target, also those that were refused; on 4.3, not on 4.0.
        since: seconds since 1970 of the last change of state.
    """

    kind: str
    name: str
    vhost: str | None = None
    node: str | None = None
    type: str | None = None
    state: str | None = None
    reason: str | None = None
    upstream: str | None = None
    local: str | None = None
    source: str | None = None
    destination: str | None = None
    source_queue: str | None = None
    source_exchange: str | None = None
    source_key: str | None = None
    target_queue: str | None = None
    target_exchange: str | None = None
    target_key: str | None = None
    forwarded: int | None = None
    since: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One feature flag or deprecated feature (`/api/feature-flags`, `/api/deprecated-features`).

    Attributes:
        deprecated: False for a feature flag.
        state: of a flag enabled, disabled, state_changing or unavailable; of a deprecated feature permitted or denied.
        stage: stability of a flag (stable, experimental, required); deprecation phase of a deprecated feature.
        in_use: whether a deprecated feature is used; None for flags, and if this version does not report it.
    """

    name: str
    deprecated: bool = False
    state: str | None = None
    stage: str | None = None
    in_use: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthAttempts:
    """Logins at one node over one protocol (`/api/auth/attempts/<node>`), counted since the node started."""

    node: str
    protocol: str
    total: int | None = None
    succeeded: int | None = None
    failed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLink:
    """The connection from one node to another of its cluster; bytes since it was opened."""

    peer: str
    recv_bytes: int | None = None
    send_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMemory:
    """The memory of one node by use (`/api/nodes/<node>/memory`).

    Attributes:
        parts: bytes by the API's name of the use.
        rss, erlang, allocated: totals by three methods of measurement, bytes.
        strategy: the method that the memory alarm uses.
    """

    node: str
    parts: Mapping[str, int] = field(default_factory=dict)
    rss: int | None = None
    erlang: int | None = None
    allocated: int | None = None
    strategy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A certificate of a TLS listener (health check `certificate-expiration`).

    Attributes:
        expires: seconds since 1970.
    """

    node: str
    protocol: str
    port: int | None
    expires: float
