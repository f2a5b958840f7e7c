"""The bindings of an exchange that loses messages, and where they lead."""

from ackscope.topology import Binding, Exchange
from diagnosis.contract import View
from diagnosis.routes import targets


def bindings_from(view: View, exchange: Exchange) -> list[Binding] | None:
    """Return the bindings from an exchange, without those to queues that were deleted since; None if not known."""
    if view.bindings is None:
        return None
    found = [each for each in view.bindings if (each.vhost, each.source) == exchange.key]
    deleted = _deleted_queues(view, found)
    return [each for each in found if each.destination_type != "queue" or each.destination not in deleted]


def dead_ends(view: View, bindings: list[Binding]) -> tuple[str, ...]:
    """Return the exchanges to which bindings lead; () if one leads to a queue, or may do so through other exchanges."""
    if any(
        each.destination_type != "exchange" or targets(view, each.vhost, each.destination, None) != frozenset()
        for each in bindings
    ):
        return ()
    return tuple(sorted({each.destination for each in bindings}))


def _deleted_queues(view: View, bindings: list[Binding]) -> set[str]:
    """Return the queues of some bindings that were deleted since these were read, and their bindings with them."""
    latest = view.window.latest
    queues_at, bindings_at = (latest.queues.at, latest.bindings.at) if latest is not None else (None, None)
    if queues_at is None or bindings_at is None or queues_at.mono <= bindings_at.mono or not view.fresh("queues"):
        return set()
    seen = {(each.vhost, each.destination): each.destination for each in bindings if each.destination_type == "queue"}
    known = {each.key for each in view.every_queue}
    return {
        name
        for place, name in seen.items()
        if place not in known and any(queue is not None for _, queue in view.presence(place))
    }
