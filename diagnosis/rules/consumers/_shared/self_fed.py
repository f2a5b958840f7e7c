"""Stuck consumers that published to the queue from which they consume: each may wait for what stands behind it.

A handler that publishes a subtask and waits for its result holds its own message until then. If the subtasks go to its
own queue, and each consumer waits so, none is left to handle them: a deadlock that a restart brings back.

Channels do not say to which queue they publish. The counters of the queue and of the channels do, where the channels
are as old as what the queue got: reading by reading, it got as much as its consumers and one other client have
published, or as all clients of the virtual host have.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ackscope.clock import Instant
from ackscope.findings import Fact
from ackscope.snapshot import Queue
from diagnosis.contract import ConsumerPath, View
from diagnosis.memo import per_view
from diagnosis.rules.consumers._shared.client_publishes import owner
from diagnosis.rules.consumers._shared.objects import client_names
from diagnosis.series import nearest

_READINGS = 2
"""Least readings of channels in which the counters can agree."""


@dataclass(frozen=True, slots=True)
class SelfFed:
    """Stuck consumers that published to their queue.

    Attributes:
        clients: their names.
        published: messages that they published to it.
        others: messages that it got from the others.
    """

    clients: list[str]
    published: int
    others: int

    def facts(self) -> dict[str, Fact]:
        """Return `{"clients", "published", "by_others"}`."""
        return {"clients": list[Fact](self.clients), "published": self.published, "by_others": self.others}


def self_fed(view: View, queue: Queue, stuck: tuple[ConsumerPath, ...]) -> SelfFed | None:
    """Return what stuck consumers published to their queue; None unless the counters agree in most readings.

    Each connection must have published: a consumer that waits for nothing would go on.
    """
    own = {path.connection.name for path in stuck if path.connection is not None}
    history = view.history(queue)
    if not own or any(path.connection is None for path in stuck) or not queue.stats.publish:
        return None
    if not own <= per_view(view, _publishing):
        return None
    readings = per_view(view, _published)
    agreed: Counter[str | None] = Counter()
    for each in readings:
        if all(each.by_connection.get((queue.vhost, name)) for name in own):
            got = nearest(history, each.at).value.stats.publish or 0
            agreed.update(each.clients_with(view, queue.vhost, own, got - each.made(queue.vhost, own)))
    best = max(agreed, key=lambda client: (agreed[client], client is None, client or ""), default=None)
    if 2 * agreed[best] <= len(readings) or len(readings) < _READINGS:
        return None
    last = readings[-1]
    return SelfFed(client_names(stuck), last.made(queue.vhost, own), last.others(view, queue.vhost, own, best))


@dataclass(frozen=True, slots=True)
class _Published:
    """What was published by a reading of channels.

    Attributes:
        at: time of the reading.
        by_connection: virtual host and name of a connection -> messages.
        by_client: virtual host and client -> messages; the client None stands for all.
        clients: virtual host and a number of messages -> the clients that published as many.
    """

    at: Instant
    by_connection: Mapping[tuple[str, str], int]
    by_client: Mapping[tuple[str, str | None], int]
    clients: Mapping[tuple[str, int], Collection[str]]

    def made(self, vhost: str, own: Collection[str]) -> int:
        """Return what some connections published."""
        return sum(self.by_connection.get((vhost, name), 0) for name in own)

    def others(self, view: View, vhost: str, own: Collection[str], client: str | None) -> int:
        """Return what a client published on other connections than these."""
        theirs = [name for name in own if client is None or owner(view, name) == client]
        return self.by_client.get((vhost, client), 0) - self.made(vhost, theirs)

    def clients_with(self, view: View, vhost: str, own: Collection[str], published: int) -> set[str | None]:
        """Return the clients that published so many messages on other connections than these."""
        owners = {owner(view, name) for name in own}
        found: set[str | None] = {each for each in self.clients.get((vhost, published), ()) if each not in owners}
        return found.union(
            each for each in (None, *(owners if published else ())) if self.others(view, vhost, own, each) == published
        )


def _publishing(view: View) -> frozenset[str]:
    """Return the connections that have published, by their channels."""
    return frozenset(each.connection_name for each in view.channels if each.stats.publish and each.connection_name)


def _published(view: View) -> tuple[_Published, ...]:
    found = []
    for seen in view.window.readings("channels"):
        by_connection, by_client = Counter[tuple[str, str]](), Counter[tuple[str, str | None]]()
        clients: dict[tuple[str, int], list[str]] = defaultdict(list)
        for channel in seen.value:
            if channel.vhost and channel.stats.publish:
                client = owner(view, channel.connection_name) or channel.name
                by_connection[channel.vhost, channel.connection_name or ""] += channel.stats.publish
                by_client[channel.vhost, client] += channel.stats.publish
        for (vhost, name), published in tuple(by_client.items()):
            clients[vhost, published].append(name or "")
            by_client[vhost, None] += published
        found.append(_Published(seen.at, by_connection, by_client, clients))
    return tuple(found)
