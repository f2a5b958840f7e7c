"""Finds exclusive queues whose name a client may ask for in vain (405 RESOURCE_LOCKED), where no bytes show it."""

from ackscope.clock import Instant
from ackscope.findings import Fact
from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.facts import client_name
from diagnosis.rules.consumers._shared.objects import client_names

_GENERATED = "amq."
"""Prefix of the names that the broker generates. No client may declare one."""


def locked_names(view: View, vhost: str | None, since: Instant) -> tuple[Queue, ...]:
    """Return the exclusive queues of a virtual host, or of all, with a name of their client's that a loop has not made.

    Each was listed all the time since the loop began.
    """
    found = (
        queue
        for queue in view.all_queues
        if queue.exclusive and not queue.name.startswith(_GENERATED) and (vhost is None or queue.vhost == vhost)
    )
    return tuple(sorted((each for each in found if _stays(view, each, since)), key=lambda each: each.key))


def locked_facts(view: View, queue: Queue) -> dict[str, Fact]:
    """Return `queue`, `vhost`, and `clients`: the names of its owner, or of those that consume from it."""
    owner = client_name(view.connection(queue.owner))
    return {
        "queue": queue.name,
        "vhost": queue.vhost,
        "clients": list[Fact]([owner] if owner else client_names(view.links(queue))),
    }


def _stays(view: View, queue: Queue, since: Instant) -> bool:
    """Return whether a queue was in each list since a loop began, or since lists are held, and two of them."""
    readings = [seen.at for seen in view.window.readings("queues") if seen.at.mono >= since.mono - 1.0]
    listed = view.listed_since(queue)
    return len(readings) > 1 and listed is not None and listed.mono <= readings[0].mono
