"""Where the messages of a queue come from: clients that publish to it, and clients that pass on to it what they take.

The queue's own counters say how many messages came, and not from whom. A client is named only if the queue got more
than all other clients can have published to it. What others published counts for another queue where that is proven:
a shovel has another target; or they filled a queue that the client consumes from. A client that publishes in response
to messages cannot do so while the queue is empty, so a queue that was empty is filled by others.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from ackscope.findings import Fact
from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.memo import per_view
from diagnosis.purpose import CONSUMED
from diagnosis.routes import Place, targets
from diagnosis.rules.cluster._shared.link_flow import SHOVEL, is_here, link_targets
from diagnosis.rules.consumers._shared.client_publishes import (
    ClientPublishes,
    client_publishes,
    owner,
    since_first_reading,
)
from diagnosis.rules.publishers._shared.native_publishers import native_publishers
from diagnosis.rules.queues._shared.message_balance import latest_run
from diagnosis.series import count, delta, last, nearest, span
from diagnosis.window import Series

_ALL = 0.8
"""Share of what a client acknowledges from which on it passes on nearly all of it."""
_STEP = 15.0
"""Seconds over which arrivals and acknowledgements are compared; the broker refreshes each every 5 s."""
_LONG = 60.0
"""Seconds for which a client must pass on nearly all: a burst of failures is shorter."""
_ROUND = 1.0
"""Seconds between the readings of queues and channels in one round."""


_Clients = tuple[tuple[str, ...], tuple[Place, ...]]
"""Names of clients, and the queues that they consume from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FillingClients:
    """A client that publishes to a queue, or several that consume from the same other queues, such as instances.

    Attributes:
        share: of the messages that came by publishes; None if the broker does not count them (AMQP 1.0).
        consumes: the queues of the virtual host that they consume from.
    """

    names: tuple[str, ...]
    share: float | None
    consumes: tuple[Place, ...]

    def facts(self) -> dict[str, Fact]:
        """Return `{"clients", "share", "consumes"}`."""
        return {"clients": list(self.names), "share": self.share, "consumes": [name for _, name in self.consumes]}


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedOn:
    """Messages that clients acknowledge from some queues, while they publish about as many to another one."""

    clients: tuple[str, ...]
    queues: tuple[str, ...]
    acked: int
    published: int
    seconds: float

    def facts(self) -> dict[str, Fact]:
        """Return `{"clients", "queues", "acked", "published", "over_seconds"}`."""
        return {
            "clients": list(self.clients),
            "queues": list(self.queues),
            "acked": self.acked,
            "published": self.published,
            "over_seconds": self.seconds,
        }


def filling_shovels(view: View, queue: Queue) -> list[Fact]:
    """Return the shovels that publish to a queue: `{"name", "vhost", "origin", "of_exchange", "dynamic"}`."""
    return [
        {
            "name": link.name,
            "vhost": link.vhost or "/",
            "origin": link.source_queue or link.source_exchange,
            "of_exchange": link.source_queue is None,
            "dynamic": link.type != "static",
        }
        for link in sorted(view.bridges, key=lambda each: each.name)
        if link.state in ("running", "flow") and is_here(link) and queue.key in link_targets(view, link)
    ]


def filling_clients(view: View, queue: Queue) -> tuple[FillingClients, ...]:
    """Return the clients that are proven to publish to a queue, the largest first; shovels have settings instead."""
    found = [*_counted(view, queue), *_by_address(view, queue)]
    return tuple(sorted(found, key=lambda each: (-(each.share or 0), each.names)))


def filled_by_consumers(clients: tuple[FillingClients, ...]) -> FillingClients | None:
    """Return the clients that publish nearly all of a queue and consume from others; None if none do."""
    first = clients[0] if clients else None
    return first if first is not None and (first.share or 0.0) >= _ALL and first.consumes else None


def passed_on(view: View, queue: Queue, clients: tuple[FillingClients, ...]) -> PassedOn | None:
    """Return what the clients that fill a queue acknowledge from others, if that is about as much; else None.

    An error queue looks like that if every message fails, and so does the next queue of a pipeline.
    """
    first = filled_by_consumers(clients)
    if first is None:
        return None
    sources = [each for place in first.consumes if (each := view.queue(*place)) is not None]
    if len(sources) < len(first.consumes) or any(_others_consume(view, each, first.names) for each in sources):
        return None

    def acked(pair: Series[Queue]) -> int:
        return sum(_acked(view, each, pair) for each in sources)

    run = latest_run(view.history(queue), _STEP, lambda pair: 0 < acked(pair) <= 2 * delta(pair, "publish"))
    settled, published = acked(run), delta(run, "publish")
    if span(run) < _LONG or not _ALL * settled <= published <= settled / _ALL:
        return None
    names = tuple(sorted(each.name for each in sources))
    return PassedOn(clients=first.names, queues=names, acked=settled, published=published, seconds=span(run))


def _counted(view: View, queue: Queue) -> Iterator[FillingClients]:
    made = client_publishes(view)
    if made is None:
        return
    history = since_first_reading(view, queue, made, _ROUND)
    published, limits = delta(history, "publish"), view.limits(queue)
    if published < limits.queues.loss_least or span(history) < limits.early:
        return
    known = made.total.get(queue.vhost, 0) + made.unseen - _moved_elsewhere(view, queue, made)
    for (names, places), number in per_view(view, _publishers)[queue.vhost].items():
        others = known - number

        def unsure(others: int) -> float:
            return limits.queues.loss_skew * (published + max(0, others)) / span(history)

        if number <= unsure(0):
            continue
        if published - others <= unsure(others):
            others -= sum(_filled_by_others(view, queue, place, made) for place in places)
        least = published - max(0, others)
        # More than they published came from somewhere else.
        if unsure(others) < least <= number + unsure(others):
            yield FillingClients(names=names, share=least / published, consumes=places)


def _publishers(view: View) -> dict[str | None, dict[_Clients, int]]:
    """Return how much clients published, by virtual host; those that consume from the same queues count as one."""
    made = client_publishes(view)
    groups: dict[tuple[str | None, str | tuple[Place, ...]], list[str]] = defaultdict(list)
    for vhost, name in made.by_owner if made else ():
        if name is not None and not name.startswith(SHOVEL):
            groups[vhost, _consumed(view, vhost, name) or name].append(name)
    found: dict[str | None, dict[_Clients, int]] = defaultdict(dict)
    for (vhost, _), names in groups.items():
        clients = tuple(sorted(names)), _consumed(view, vhost, names[0])
        found[vhost][clients] = made.of(vhost, names) if made else 0
    return found


def _by_address(view: View, queue: Queue) -> Iterator[FillingClients]:
    """Yield the AMQP 1.0 clients with a link to this queue on which messages came."""
    found = {
        each.client: (each.connection.vhost or "/")
        for each in native_publishers(view)
        if delta(each.history, "publish") > 0 and queue.key in (each.reached(view) or ())
    }
    for name, vhost in found.items():
        yield FillingClients(names=(name,), share=None, consumes=_consumed(view, vhost, name))


def _consumed(view: View, vhost: str | None, name: str) -> tuple[Place, ...]:
    return tuple(sorted(per_view(view, _consumed_by_client).get((vhost, name), ())))


def _consumed_by_client(view: View) -> dict[tuple[str | None, str], set[Place]]:
    found: dict[tuple[str | None, str], set[Place]] = defaultdict(set)
    for each in view.every_consumer:
        name = owner(view, each.connection_name)
        if name is not None:
            found[each.vhost, name].add((each.vhost, each.queue))
    return found


def _moved_elsewhere(view: View, queue: Queue, made: ClientPublishes) -> int:
    """Return what shovels published that are known to have other targets."""
    elsewhere = {
        SHOVEL + link.name
        for link in view.bridges
        if (reached := link_targets(view, link)) and queue.key not in reached
    }
    return made.of(queue.vhost, elsewhere)


def _filled_by_others(view: View, queue: Queue, place: Place, made: ClientPublishes) -> int:
    """Return the messages of a queue that others than its consumer published, none of them to the first queue, too."""
    other = view.queue(*place)
    if other is None or _may_copy(view, queue, other):
        return 0
    recent = last(view.history(other), view.limits(other).consumers.no_consumer_growing)
    was_empty = any(seen.value.messages == 0 for seen in recent)
    return delta(since_first_reading(view, other, made, _ROUND), "publish") if was_empty else 0


def _may_copy(view: View, queue: Queue, other: Queue) -> bool:
    """Return whether an exchange may route one message to both queues; each may get its own ones from it."""
    if view.bindings is None or not view.fresh("exchanges"):
        return True
    for exchange in view.exchanges:
        stats = exchange.stats
        if exchange.vhost != queue.vhost or not exchange.name or not stats.publish_in:
            continue
        # The endpoints, which also count what is dropped, count a message once, however many queues it reaches.
        if count(stats, "publish_out") > stats.publish_in or stats.drop_unroutable is not None:
            reached = targets(view, exchange.vhost, exchange.name, None)
            if reached is None or {queue.key, other.key} <= reached:
                return True
    return False


def _others_consume(view: View, queue: Queue, names: tuple[str, ...]) -> bool:
    return any(owner(view, link.consumer.connection_name) not in names for link in view.links(queue))


def _acked(view: View, queue: Queue, pair: Series[Queue]) -> int:
    history = view.history(queue)
    return delta((nearest(history, pair[0].at), nearest(history, pair[-1].at)), *CONSUMED) if pair and history else 0
