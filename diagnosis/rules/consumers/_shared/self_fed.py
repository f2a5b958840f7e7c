"""Stuck consumers that published to the queue from which they consume: each may wait for what stands behind it.

A handler that publishes a subtask and waits for its result holds its own message until then. If the subtasks go to its
own queue, and each consumer waits so, none is left to handle them: a deadlock that a restart brings back.

Channels do not say to which queue they publish. The counters of the queue and of the channels do, where the channels
are as old as what the queue got: reading by reading, it got as much as its consumers and one other client have
published, or as all clients of the virtual host have.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ackscope.findings import Fact
from ackscope.snapshot import Channel, Queue
from diagnosis.contract import ConsumerPath, View
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
    readings = view.window.readings("channels")
    agreed: Counter[str | None] = Counter()
    made, others = Counter[str](), Counter[str | None]()
    for seen in readings:
        made, others = _published(view, queue.vhost, own, seen.value)
        if all(made[name] for name in own):
            left = (nearest(history, seen.at).value.stats.publish or 0) - made.total()
            agreed.update(client for client, published in others.items() if published == left)
    best = max(agreed, key=lambda client: (agreed[client], client is None, client or ""), default=None)
    if 2 * agreed[best] <= len(readings) or len(readings) < _READINGS:
        return None
    return SelfFed(client_names(stuck), made.total(), others[best])


def _published(
    view: View, vhost: str, own: Collection[str], channels: Iterable[Channel]
) -> tuple[Counter[str], Counter[str | None]]:
    """Return what connections of `own` published, and each other client of a virtual host; all of these under None."""
    made, others = Counter[str](), Counter[str | None]({None: 0})
    for channel in channels:
        published = channel.stats.publish or 0
        if channel.vhost != vhost or not published:
            continue
        if channel.connection_name in own:
            made[channel.connection_name or ""] += published
        else:
            others[None] += published
            others[owner(view, channel.connection_name) or channel.name] += published
    return made, others
