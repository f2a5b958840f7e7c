"""Stuck consumers that may wait for a reply: their connections have published, and consume from reply queues as well.

A handler that sends a request and waits for the reply holds its own message until then. If the request goes to the
queue that it consumes from, and all consumers wait so, none is left to answer. If the clients of two queues call each
other so, both stand still, and nothing frees them: who is restarted gets the same message again, and calls again.

What a client published, less the replies that it got and those that it sent, is what it waits for. Whether it sends a
reply for each message is not known.
Source: https://www.rabbitmq.com/docs/direct-reply-to, https://www.rabbitmq.com/tutorials/tutorial-six-python
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from ackscope.findings import Fact, Finding
from ackscope.snapshot import Queue
from diagnosis.contract import ConsumerPath, View
from diagnosis.memo import per_view
from diagnosis.relations import both
from diagnosis.rules.consumers._shared.common_stops import stopped_within
from diagnosis.rules.consumers._shared.consequences import queue_key
from diagnosis.rules.consumers._shared.objects import client_names
from diagnosis.rules.consumers._shared.stalled_consumers import Stall, stalls
from diagnosis.rules.queues._shared.queue import is_private
from diagnosis.series import count

_TOGETHER = 15.0
"""Seconds within which clients that call each other come to a standstill: each finishes no more than one message."""


@dataclass(frozen=True, slots=True)
class MutualWait:
    """Queues of one virtual host whose consumers, of different clients, probably wait for each other's replies."""

    stalls: tuple[Stall, ...]

    @property
    def queues(self) -> list[str]:
        """Names of the queues, sorted."""
        return sorted(each.queue.name for each in self.stalls)

    def facts(self) -> dict[str, Fact]:
        """Return `{"queues", "clients", "requests"}`; `requests` are the messages of the shortest of the queues."""
        return {
            "queues": list[Fact](self.queues),
            "clients": list[Fact](sorted({name for each in self.stalls for name in client_names(each.stuck)})),
            "requests": min(each.queue.messages or 0 for each in self.stalls),
        }


def awaiting_replies(view: View, stuck: Sequence[ConsumerPath]) -> list[str]:
    """Return the names of stuck clients if each of them may wait for a reply; else nothing."""
    published = per_view(view, _published)
    names = [path.connection.name if path.connection is not None else "" for path in stuck]
    return client_names(stuck) if all(_awaits(view, each, *published.get(each, (0, 0))) for each in names) else []


def mutual_wait(view: View, queue: Queue) -> MutualWait | None:
    """Return the wait of the consumers of a queue for those of other queues, which wait for them; None without one."""
    return per_view(view, _by_queue).get(queue.key)


def _keys(view: View, finding: Finding) -> Iterable[Hashable]:
    waits = per_view(view, _by_queue)
    return (waits[key].stalls[0].queue.key for key in queue_key(view, finding) if key in waits)


WAIT_FOR_EACH_OTHER = both(_keys)
"""Both are about queues whose consumers probably wait for each other."""


def _by_queue(view: View) -> Mapping[Hashable, MutualWait]:
    return {stall.queue.key: wait for wait in _waits(view) for stall in wait.stalls}


def _waits(view: View) -> Iterator[MutualWait]:
    waiting = [each for each in stalls(view) if each.whole_queue and each.stuck and awaiting_replies(view, each.stuck)]
    waiting.sort(key=lambda each: each.queue.vhost)
    for _, of_vhost in groupby(waiting, key=lambda each: each.queue.vhost):
        for group in stopped_within(((stall.since, stall) for stall in of_vhost), _TOGETHER):
            yield from _mutual([stall for _, stall in group])


def _mutual(group: list[Stall]) -> Iterator[MutualWait]:
    clients = {tuple(client_names(each.stuck)) for each in group}
    # The request of one of them is ready in the queue of another, or it would be handled.
    if len(clients) > 1 and any(each.queue.messages_ready for each in group):
        yield MutualWait(tuple(group))


def _published(view: View) -> dict[str, tuple[int, int]]:
    """Return what connections have published and acknowledged, of those that have published."""
    found: dict[str, tuple[int, int]] = {}
    for each in view.channels:
        if each.connection_name:
            published, acked = found.get(each.connection_name, (0, 0))
            found[each.connection_name] = (published + (each.stats.publish or 0), acked + (each.stats.ack or 0))
    return {name: numbers for name, numbers in found.items() if numbers[0]}


def _awaits(view: View, connection: str, published: int, acked: int) -> bool:
    """Return whether a connection has a reply queue, consumes from another one, and may lack a reply."""
    found = [each for place in view.queues_consumed(connection) if (each := view.any_queue(*place)) is not None]
    replies = [each for each in found if is_private(each)]
    if not replies or len(replies) == len(found):
        return False
    got = sum(count(each.stats, "deliver", "deliver_no_ack") for each in replies)
    handled = acked - sum(count(each.stats, "deliver") for each in replies)
    # If it sends a reply for each message that it handled, the rest are requests.
    return published > got and not (handled > 0 and published - got == handled)
