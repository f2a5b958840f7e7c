"""What shovels and federation links take from queues of this cluster, and whether their target accepts it.

A link is known from two sides: the list of links, with the queue it takes from, and the connections that it opens
(`Shovel NAME`, `Federation link (...)`), also those of a link that another cluster runs. A shovel within its own node
has a direct connection without a client name, or none at all (protocol `local`, from 4.2 on).

If the target refuses a message, the link requeues it at the source and gets it again at once. Each message is then
redelivered many times, which a restart of the link does not do: it causes one redelivery of each.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from ackscope.clock import Instant
from ackscope.snapshot import Connection, Queue
from ackscope.topology import Link
from diagnosis.contract import ConsumerPath, View
from diagnosis.memo import per_view
from diagnosis.purpose import FEDERATION_QUEUES
from diagnosis.routes import targets
from diagnosis.rules.clients._shared.connections import is_internal
from diagnosis.rules.consumers._shared.redelivery_rounds import REFRESH_SECONDS, redelivery_rounds
from diagnosis.rules.consumers._shared.stalled_consumers import Stall, stalls
from diagnosis.series import delta, span
from diagnosis.window import Series

SHOVEL, FEDERATION = "Shovel ", "Federation link"
"""Beginnings of the client names of links."""

_TIMES = 3
"""Redeliveries per message that show that the same messages circulate; one each follows a restart."""
_LATEST = 3
"""Readings of a link that show whether it forwards now."""
_LAG = 6.0
"""Seconds by which counters of two families may be apart."""

Place = tuple[str, str]
"""Virtual host and name of a queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSource:
    """A queue that a link takes messages from.

    Attributes:
        name: of the shovel, or of the connection of a federation link.
        kind: shovel or federation.
        link: the link as its broker lists it; None if another cluster runs it.
        path: its consumer on the queue; None if that is not known.
    """

    queue: Queue
    name: str
    kind: str
    link: Link | None
    path: ConsumerPath | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Circulation:
    """Messages that a link takes from its source and puts back.

    Attributes:
        rounds: the readings of the queue that show it.
        returned: messages put back in that time.
        moved: messages that left the queue for good.
        by_forwarded: it is shown by the link's own counter, because the queue counts no deliveries to it.
    """

    source: LinkSource
    rounds: Series[Queue]
    returned: int
    moved: int
    by_forwarded: bool


def link_client(connection: Connection | None) -> bool:
    """Return whether a connection is one of a shovel or federation link, by its client name."""
    return (connection.client_name or "" if connection else "").startswith((SHOVEL, FEDERATION))


def link_sources(view: View) -> tuple[LinkSource, ...]:
    """Queues that links take messages from, sorted by name."""
    return per_view(view, _sources)


def circulations(view: View) -> dict[Place, Circulation]:
    """Links that put back what they take, by their source queue."""
    return per_view(view, _circulations)


def stalled_links(view: View) -> tuple[tuple[LinkSource, Stall], ...]:
    """Return the links that are the stuck consumers of their source: they hold messages of it and settle none."""
    return per_view(view, _stalled)


def link_queues(view: View, link: Link) -> frozenset[Place]:
    """Return the queues of this cluster that a link takes messages from, as far as its settings show.

    A federated exchange is read through a queue at its upstream, with a name that both sides make up (seen on 3.10.8
    and 4.3.6). It is here if the upstream is this cluster.
    """
    vhosts = _vhosts(link.source, link.vhost)
    if link.kind == "shovel":
        named = [(vhost, link.source_queue) for vhost in vhosts if link.source_queue is not None]
        return frozenset([place for place in named if view.queue(*place) is not None] or named[:1])
    cluster = view.overview.cluster_name if view.overview else None
    if link.source_exchange is not None and cluster is not None:
        named = [(vhost, _federation_queue(link, link.source_exchange, vhost, cluster)) for vhost in vhosts]
    else:
        # Without a virtual host in its address, the queue may be the one of the same name at the other broker.
        named = [(vhost, link.source_queue) for vhost in vhosts[:1] if link.source_queue and vhost != link.vhost]
    return frozenset(place for place in named if view.queue(*place) is not None)


def _federation_queue(link: Link, exchange: str, vhost: str, cluster: str) -> str:
    """Return the name of the queue at the upstream, whose virtual host this is."""
    own = "" if link.local in (None, exchange) else f":{link.local}"
    place = own if link.vhost == vhost else f":{link.vhost}:{link.local or exchange}"
    return f"{FEDERATION_QUEUES}{exchange} -> {cluster}{place}"


def link_targets(view: View, link: Link | None) -> frozenset[Place]:
    """Return the queues of this cluster to which a shovel publishes, as far as its settings show."""
    if link is None or link.kind != "shovel":
        return frozenset()
    found: set[Place] = set()
    for vhost in _vhosts(link.destination, link.vhost):
        if link.target_queue is not None:
            found |= {(vhost, link.target_queue)} if view.queue(vhost, link.target_queue) else set()
        elif link.target_exchange is not None:
            found |= targets(view, vhost, link.target_exchange, link.target_key) or set()
    return frozenset(found)


def is_here(link: Link) -> bool:
    """Return whether the target of a shovel is in the cluster that it takes from, by its addresses."""
    return not _host(link.destination) or _host(link.destination) == _host(link.source)


def _host(address: str | None) -> str:
    return urlsplit(address or "").netloc.rpartition("@")[2]


def _vhosts(address: str | None, own: str | None) -> tuple[str, ...]:
    """Return the virtual hosts that an address may mean: without a path, the default one or the link's own."""
    path = urlsplit(address or "").path[1:]
    return (unquote(path),) if path else tuple(dict.fromkeys((own or "/", "/")))


def _sources(view: View) -> tuple[LinkSource, ...]:
    found = {each.queue.key: each for each in (*_by_settings(view), *_by_connections(view))}
    return tuple(found[key] for key in sorted(found))


def _by_connections(view: View) -> Iterator[LinkSource]:
    """Yield the queues that connections with the name of a link consume from."""
    named = {connection.name: connection for connection in view.connections if link_client(connection)}
    if not named:
        return
    keys = sorted({(each.vhost, each.queue) for each in view.every_consumer if each.connection_name in named})
    shovels = {(link.name, link.source_queue): link for link in view.bridges if link.kind == "shovel"}
    for vhost, name in keys:
        queue = view.queue(vhost, name)
        for path in view.links(queue) if queue is not None else ():
            client = (path.connection.client_name or "") if path.connection else ""
            if queue is not None and link_client(path.connection):
                shovel = client.startswith(SHOVEL)
                own = client.removeprefix(SHOVEL)
                yield LinkSource(
                    queue=queue,
                    name=own,
                    kind="shovel" if shovel else "federation",
                    link=shovels.get((own, name)),
                    path=path,
                )


def _by_settings(view: View) -> Iterator[LinkSource]:
    """Yield the queues that listed shovels take from by a direct connection, or within the node."""
    for link in view.bridges:
        if link.kind != "shovel" or link.source_queue is None:
            continue
        for vhost in _vhosts(link.source, link.vhost):
            queue = view.queue(vhost, link.source_queue)
            path = next((each for each in view.links(queue) if _inner(each, link)), None) if queue else None
            if queue is not None and path is not None:
                yield LinkSource(queue=queue, name=link.name, kind=link.kind, link=link, path=path)
                break


def _inner(path: ConsumerPath, link: Link) -> bool:
    """Return whether a consumer has no network connection and may be that of this shovel."""
    if path.consumer.channel_name is None:
        return path.consumer.tag.startswith(f"{link.name}_")
    internal = path.connection is not None and is_internal(path.connection)
    return internal or (path.consumer.connection_name or "").startswith("<")


def forwards(view: View, link: Link | None) -> bool:
    """Return whether a shovel sent messages to its target in its latest readings, by its own counter."""
    sent = _forwarded(view, link)[-_LATEST:] if link is not None else []
    return len(sent) > 1 and sent[-1][1] > sent[0][1]


def _stalled(view: View) -> tuple[tuple[LinkSource, Stall], ...]:
    sources = {source.queue.key: source for source in link_sources(view)}
    found = []
    for stall in stalls(view):
        source = sources.get(stall.queue.key)
        own = source.path.consumer if source is not None and source.path is not None else None
        if source is not None and all(link_client(each.connection) or each.consumer == own for each in stall.stuck):
            found.append((source, stall))
    return tuple(found)


def _circulations(view: View) -> dict[Place, Circulation]:
    found = {}
    for source in link_sources(view):
        each = _by_redeliveries(view, source) or _by_forwarded(view, source)
        if each is not None:
            found[source.queue.key] = each
    return found


def _by_redeliveries(view: View, source: LinkSource) -> Circulation | None:
    queue = source.queue
    if not queue.stats.redeliver or not view.moved(queue, "redeliver"):
        return None
    limits, history = view.limits(queue), view.history(queue)
    rounds = redelivery_rounds(view, history, limits.interval)
    if span(rounds) < limits.early:
        rounds = redelivery_rounds(view, history, REFRESH_SECONDS)
    if span(rounds) < limits.early:
        return None
    returned, moved = delta(rounds, "redeliver"), delta(rounds, "ack")
    held = max(seen.value.messages_unacked or 0 for seen in rounds)
    if returned < _TIMES * (held + moved) or not _returns_most(view, source):
        return None
    return Circulation(source=source, rounds=rounds, returned=returned, moved=moved, by_forwarded=False)


def _returns_most(view: View, source: LinkSource) -> bool:
    """Return whether the link, and no other consumer, gets the redeliveries."""
    times = {
        path.channel.name: delta(view.channel_history(path.channel.name), "redeliver")
        for path in view.links(source.queue)
        if path.channel is not None
    }
    own = source.path.channel.name if source.path and source.path.channel else ""
    return not any(times.values()) or 2 * times.get(own, 0) > sum(times.values())


def _by_forwarded(view: View, source: LinkSource) -> Circulation | None:
    """Judge a shovel without a channel by its own counter, which also counts what its target refused."""
    link, history = source.link, view.history(source.queue)
    if link is None or link.forwarded is None or not source.queue.messages or source.queue.stats.deliver:
        return None
    if source.path is not None and source.path.channel is not None:
        return None
    sent = _forwarded(view, link)
    if len(sent) < 2 or len(history) < 2:
        return None
    # The readings of the queue that cover the two of the link.
    began = next((at for at, _ in sent if history[0].at.since(at) <= 0), None)
    if began is None:
        return None
    rounds = tuple(seen for seen in history if seen.at.since(began) >= -_LAG)
    seconds = sent[-1][0].since(began)
    if len(rounds) < 2 or seconds < view.thresholds.early:
        return None
    forwarded = sent[-1][1] - next(number for at, number in sent if at == began)
    grown = (rounds[-1].value.messages or 0) - (rounds[0].value.messages or 0)
    moved = max(0, delta(rounds, "publish") - grown)
    held = max(seen.value.messages_unacked or 0 for seen in rounds)
    # Counters of the queue may be some seconds behind those of the link, while it transfers a backlog.
    if forwarded * max(0.0, seconds - _LAG) / seconds < _TIMES * (held + moved + 1):
        return None
    return Circulation(source=source, rounds=rounds, returned=max(0, forwarded - moved), moved=moved, by_forwarded=True)


def _forwarded(view: View, link: Link) -> list[tuple[Instant, int]]:
    """Return the counter of a shovel at each reading since it last started."""
    found: list[tuple[Instant, int]] = []
    for seen in view.window.readings("links"):
        for each in seen.value:
            if (each.kind, each.vhost, each.name) == (link.kind, link.vhost, link.name) and each.forwarded is not None:
                if found and each.forwarded < found[-1][1]:
                    found.clear()
                found.append((seen.at, each.forwarded))
    return found
