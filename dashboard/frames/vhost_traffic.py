"""Who publishes in a virtual host and what its exchanges receive; which of both belong together, and how surely. Pure.

In its default mode the broker counts the messages of a channel and those of an exchange, not those from one to the
other. It follows for sure only if one exchange of the virtual host receives messages at all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pandas as pd

from dashboard.frames.client_names import client_names

CHANNEL_COLUMNS = ("name", "vhost", "connection_name", "lately.publish", "lately.deliver_get", "lately.ack")
CONNECTION_COLUMNS = ("name", "client_name", "user", "peer_host")
EXCHANGE_COLUMNS = (
    *("vhost", "name", "type", "stats.publish_in", "lately.publish_in"),
    *("stats.publish_out", "lately.publish_out"),
)
STREAM_PUBLISHER_COLUMNS = ("vhost", "queue", "connection_name", "published", "confirmed", "errored")

_LEAST = 0.01
"""Messages per second below which nothing is published."""
_FITS, _FITS_LEAST = 0.08, 1.0
"""A client fits an exchange if their rates differ by at most this share, and are at least this many per second."""
_OWN = "ackscope-"


class RouteCertainty(StrEnum):
    """How sure it is that a client publishes to an exchange."""

    CERTAIN = "certain"
    FITS = "its rate fits"
    POSSIBLE = "possible"


@dataclass(frozen=True, slots=True)
class PublishingClient:
    """Connections with the same client name that publish in a virtual host.

    Attributes:
        name: as the client calls itself; else its product or host.
        rate: messages per second.
        own: it is a probe of ackscope.
    """

    name: str
    rate: float
    connections: int
    hosts: tuple[str, ...] = ()
    own: bool = False


@dataclass(frozen=True, slots=True)
class VhostTraffic:
    """Publishing clients of a virtual host, the busiest first, and what its exchanges receive per second.

    Attributes:
        received: by exchange, "" is the default one; None if unknown. Without what ackscope's probes publish.
        routed: copies of messages per second that a named exchange hands to queues; only those that are known. Fewer
            than it receives means that messages are dropped or returned, more that several queues get copies.
        types: type of each exchange.
        channels: by channel: messages per second delivered and acknowledged; None if unknown.
        problem: why publishers are unknown; None if they are known.
    """

    clients: tuple[PublishingClient, ...] = ()
    received: Mapping[str, float | None] = field(default_factory=dict)
    routed: Mapping[str, float] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    channels: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    problem: str | None = None

    @property
    def busy(self) -> frozenset[str]:
        """Exchanges that receive messages, or may."""
        return frozenset(name for name, rate in self.received.items() if rate is None or rate >= _LEAST)

    def publishers(self, exchange: str) -> list[tuple[PublishingClient, RouteCertainty]]:
        """The clients that publish to an exchange, or may; the probes of ackscope are left out."""
        busy = self.busy
        if exchange not in busy:
            return []
        apps = [client for client in self.clients if not client.own]
        if len(busy) == 1:
            return [(client, RouteCertainty.CERTAIN) for client in apps]
        pairs = self._fitting(apps)
        if exchange in pairs:
            return [(pairs[exchange], RouteCertainty.FITS)]
        matched = set(pairs.values())
        return [(client, RouteCertainty.POSSIBLE) for client in apps if client not in matched]

    def route_rate(self, sources: Sequence[str], exchange: str, published: float | None) -> float | None:
        """Messages per second that reach a queue through one of the exchanges bound to it; None if unknown.

        Args:
            sources: all exchanges bound to the queue; the default one may always feed it.
            exchange: one of them.
            published: messages per second that the queue receives.
        """
        possible = self.busy & {*sources, ""}
        if exchange not in possible:
            return 0.0
        return published if possible == {exchange} else None

    def _fitting(self, clients: Sequence[PublishingClient]) -> dict[str, PublishingClient]:
        """Exchanges whose rate only one client fits, which fits no other exchange."""
        found = {}
        for exchange in self.busy:
            fitting = [client for client in clients if self._fits(client, exchange)]
            if len(fitting) == 1 and sum(self._fits(fitting[0], other) for other in self.busy) == 1:
                found[exchange] = fitting[0]
        return found

    def _fits(self, client: PublishingClient, exchange: str) -> bool:
        rate = self.received[exchange]
        return rate is not None and rate >= _FITS_LEAST and abs(client.rate - rate) <= _FITS * rate


def stream_writers(publishers: pd.DataFrame, connections: pd.DataFrame) -> pd.DataFrame:
    """Publishers that use the stream protocol, from lists with the columns above.

    Columns: `vhost`, `queue`, `client`, `unconfirmed` (messages; NaN if unknown), `errored`.
    """
    named = dict(zip(connections["name"], client_names(connections), strict=True))
    clients = [str(named.get(name, name)) for name in publishers["connection_name"]]
    published, confirmed, errored = (
        pd.to_numeric(publishers[name], errors="coerce") for name in ("published", "confirmed", "errored")
    )
    return pd.DataFrame(
        {
            "vhost": publishers["vhost"],
            "queue": publishers["queue"],
            "client": pd.Series(clients, index=publishers.index, dtype=object),
            "unconfirmed": (published - confirmed - errored.fillna(0)).clip(lower=0),
            "errored": errored,
        }
    )


def traffic(vhost: str, channels: pd.DataFrame, connections: pd.DataFrame, exchanges: pd.DataFrame) -> VhostTraffic:
    """The traffic of a virtual host, from lists with the columns above."""
    mine = channels[channels["vhost"] == vhost]
    hosts = dict(zip(connections["name"], connections["peer_host"], strict=True))
    named = dict(zip(connections["name"], client_names(connections), strict=True))
    groups: dict[str, list[tuple[float, str, str]]] = {}
    unknown = 0
    for connection, published in mine[["connection_name", "lately.publish"]].to_numpy():
        rate = _number(published)
        unknown += rate is None
        if rate is not None and rate >= _LEAST:
            host = str(hosts.get(connection) or "")
            who = named.get(connection) or connection or "unknown client"
            groups.setdefault(str(who), []).append((rate, str(connection), host))
    clients = [
        PublishingClient(
            name=who,
            rate=sum(rate for rate, _, _ in pairs),
            connections=len({connection for _, connection, _ in pairs}),
            hosts=tuple(sorted({host for _, _, host in pairs if host} - {who})),
            own=who.startswith(_OWN),
        )
        for who, pairs in groups.items()
    ]
    here = exchanges[exchanges["vhost"] == vhost]
    counted = bool(exchanges["stats.publish_in"].notna().any())
    # The broker omits a counter before its first event: if it has others, a missing one is 0.
    received = {
        name: 0.0 if pd.isna(total) and counted else _number(rate)
        for name, total, rate in here[["name", "stats.publish_in", "lately.publish_in"]].to_numpy()
    }
    # The counter of copies is missing until the first one.
    routed = {
        name: 0.0 if pd.isna(total) else float(rate)
        for name, total, rate in here[["name", "stats.publish_out", "lately.publish_out"]].to_numpy()
        if name and received.get(name) is not None and (pd.isna(total) or not pd.isna(rate))
    }
    rate, probes = received.get(""), sum(client.rate for client in clients if client.own)
    if rate is not None:
        # The probes publish to the default exchange. A few percent that remain are the time between two readings.
        received[""] = rate - probes if rate - probes > _FITS * rate + 0.5 * (probes > 0) else 0.0
    problem = None
    if not len(channels):
        problem = "the channels have not been read"
    elif len(mine) and unknown == len(mine):
        problem = "the channels have been read only once, or have no counters"
    return VhostTraffic(
        clients=tuple(sorted(clients, key=lambda it: (-it.rate, it.name))),
        received=received,
        routed=routed,
        types={name: str(kind or "") for name, kind in here[["name", "type"]].to_numpy()},
        channels={
            name: (_number(sent), _number(acked))
            for name, sent, acked in mine[["name", "lately.deliver_get", "lately.ack"]].to_numpy()
        },
        problem=problem,
    )


def _number(value: Any) -> float | None:
    return None if pd.isna(value) else float(value)
