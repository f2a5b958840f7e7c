"""Finds exclusive queues whose name a client may ask for in vain (405 RESOURCE_LOCKED), where no bytes show it."""

from ackscope.clock import Instant
from ackscope.findings import Fact
from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.facts import client_name
from diagnosis.rules.consumers._shared.objects import client_names

_GENERATED = "amq."
"""Prefix of the names that the broker generates. No client may declare one."""
_READINGS = 2
"""Least lists of queues since a loop began that show that a queue stays."""


def locked_names(view: View, vhost: str | None, since: Instant) -> tuple[Queue, ...]:
    """Return the exclusive queues of a virtual host, or of all, with a name of their client's that a loop has not made.

    Each was listed all the time since the loop began, or since lists are held.
    """
    readings = [seen.at.mono for seen in view.window.readings("queues") if seen.at.mono >= since.mono - 1.0]
    if len(readings) < _READINGS:
        return ()
    found = (
        queue
        for queue in view.all_queues
        if queue.exclusive and not queue.name.startswith(_GENERATED) and (vhost is None or queue.vhost == vhost)
    )
    return tuple(sorted((each for each in found if _stays(view, each, readings[0])), key=lambda each: each.key))


def locked_facts(view: View, queue: Queue) -> dict[str, Fact]:
    """Return `queue`, `vhost`, and `clients`: the names of its owner, or of those that consume from it."""
    owner = client_name(view.connection(queue.owner))
    return {
        "queue": queue.name,
        "vhost": queue.vhost,
        "clients": list[Fact]([owner] if owner else client_names(view.links(queue))),
    }


def _stays(view: View, queue: Queue, first: float) -> bool:
    """Return whether a queue was in each list since one that was read at `first`, on the monotonic clock."""
    listed = view.listed_since(queue)
    return listed is not None and listed.mono <= first
