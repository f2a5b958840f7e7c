"""A queue whose consumers may be those that a growing queue lacks: one of the two names or places is wrong."""

import re
from collections import defaultdict
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise

from ackscope.snapshot import Queue
from diagnosis.churn_loops import ChurnLoop, churn_loops
from diagnosis.memo import per_view
from diagnosis.names import letters, look_alike
from diagnosis.purpose import mqtt_client, was_consumed
from diagnosis.rules.clients._shared.not_found import lost_queues
from diagnosis.rules.consumers._shared.objects import client_names
from diagnosis.series import count, delta, last
from diagnosis.view import View
from diagnosis.window import Series

_AT_ONCE = 20.0
"""Seconds between the last message of one queue and the first of another whose publisher moved: readings are apart."""
_COMPARED = 200
"""Names that are compared letter by letter, which takes time."""
_CLOSE = 0.9
_NUMBERS = re.compile(r"[0-9]+")
_VERSION = re.compile(r"[._-]?v[0-9]+(?![0-9a-z])", re.IGNORECASE)
"""The version in a name such as `orders.v2`. A number alone is that of a shard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarQueue:
    """A queue whose consumers may be those that a growing queue lacks: one of the two names or places is wrong.

    Attributes:
        vhost: its virtual host if that is another one.
        received: whether it got messages until those of the growing queue began.
        gone: whether it was deleted.
        clients: those that consume from it, or still ask for it.
        loops: connections of clients that still ask for it, and that get an error each time.
    """

    name: str
    vhost: str | None = None
    received: bool = False
    gone: bool = False
    clients: tuple[str, ...] = ()
    loops: tuple[str, ...] = ()


def similar_queue(view: View, queue: Queue) -> SimilarQueue | None:
    """Return a queue with nearly the same name whose consumers get nothing; None if the queue itself was consumed.

    The names differ in case, in a separator, in something that no reader sees, in a letter, or in a version. Names that
    differ in a number are those of shards, unless the other queue was deleted and its client still asks for it. Or the
    names are the same in two virtual hosts. Several rules ask for it, and names are compared letter by letter.
    """
    found = per_view(view, _compared)
    if queue.key not in found:
        found[queue.key] = None if was_consumed(queue) else _similar_queue(view, queue)
    return found[queue.key]


def _compared(_view: View) -> dict[tuple[str, str], SimilarQueue | None]:
    """Return the results of `similar_queue` by queue, none at first."""
    return {}


def _similar_queue(view: View, queue: Queue) -> SimilarQueue | None:
    idle = per_view(view, _idle_queues).get(queue.vhost, ())
    alike = {each for each in idle if look_alike(each, queue.name)}
    close = alike or set(get_close_matches(queue.name, idle[:_COMPARED], n=1, cutoff=_CLOSE))
    name = next((each for each in sorted(close) if _NUMBERS.findall(each) == _NUMBERS.findall(queue.name)), None)
    name = name or _other_version(view, queue)
    if name is None:
        return _deleted_queue(view, queue) or _in_other_vhost(view, queue)
    other = view.queue(queue.vhost, name)
    received = other is not None and _moves(view.history(other))
    if other is not None and received and not _continues(view, queue, other):
        return None
    return SimilarQueue(name=name, received=received)


def _other_version(view: View, queue: Queue) -> str | None:
    """Return the name of the only idle queue that differs from that of a queue in its version."""
    versions = per_view(view, _idle_versions).get((queue.vhost, _VERSION.sub("", queue.name)), ())
    found = [each for each in versions if each != queue.name]
    return found[0] if len(found) == 1 else None


def _idle_versions(view: View) -> dict[tuple[str, str], list[str]]:
    """Return the idle queues by virtual host and name without its version."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for vhost, names in per_view(view, _idle_queues).items():
        for name in names:
            found[vhost, _VERSION.sub("", name)].append(name)
    return found


def _deleted_queue(view: View, queue: Queue) -> SimilarQueue | None:
    loops: dict[str, list[ChurnLoop]] = defaultdict(list)
    for closing in churn_loops(view):
        if not closing.whole and closing.connection.vhost == queue.vhost:
            for gone in lost_queues(view, closing):
                loops[gone.name].append(closing)
    own = _NUMBERS.sub("", letters(queue.name))
    alike = {each for each in loops if _NUMBERS.sub("", letters(each)) == own}
    name = next(iter(sorted(alike or get_close_matches(queue.name, list(loops), n=1, cutoff=_CLOSE))), None)
    if name is None:
        return None
    clients = tuple(sorted({each.client for each in loops[name]}))
    return SimilarQueue(
        name=name, gone=True, clients=clients, loops=tuple(sorted(each.connection.name for each in loops[name]))
    )


def _in_other_vhost(view: View, queue: Queue) -> SimilarQueue | None:
    """Return the queue of the same name in another virtual host, if it is the only one.

    It never got a message, or its messages ended when those of the growing queue began.
    """
    others = [each for each in per_view(view, _by_name)[queue.name] if each.vhost != queue.vhost]
    other = others[0] if len(others) == 1 else None
    if other is None or not other.consumers or other.messages != 0:
        return None
    received = count(other.stats, "publish", "deliver_get") > 0
    if received and not _continues(view, queue, other):
        return None
    clients = tuple(client_names(view.links(other)))
    return SimilarQueue(name=other.name, vhost=other.vhost, clients=clients, received=received)


def _continues(view: View, queue: Queue, other: Queue) -> bool:
    """Return whether a queue got its first messages when another one got its last, within these readings."""
    readings, received = view.readings_of(queue), [seen for seen in view.history(queue) if seen.value.stats.publish]
    rises = [newer.at for older, newer in pairwise(view.history(other)) if delta((older, newer), "publish") > 0]
    first = view.window.readings("queues")[0].at
    if not received or not rises or (received[0] == readings[0] and received[0].at == first):
        return False
    return abs(received[0].at.since(rises[-1])) <= _AT_ONCE


def _by_name(view: View) -> dict[str, list[Queue]]:
    found: dict[str, list[Queue]] = defaultdict(list)
    for queue in view.queues:
        found[queue.name].append(queue)
    return found


def _idle_queues(view: View) -> dict[str, list[str]]:
    """Return the queues of each virtual host that are empty, have consumers and got nothing lately."""
    found: dict[str, list[str]] = defaultdict(list)
    for queue in view.queues:
        # Sessions of MQTT clients count nothing, and have names that differ in the client id.
        recent = last(view.history(queue), _AT_ONCE)
        if queue.consumers and not queue.messages and mqtt_client(queue) is None and not _moves(recent):
            found[queue.vhost].append(queue.name)
    return found


def _moves(series: Series[Queue]) -> bool:
    return delta(series, "publish", "deliver", "deliver_no_ack") > 0
