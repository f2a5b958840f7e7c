"""What the consumers of one queue did, from totals of all AMQP 1.0 consumers of queues of its type.

The totals name no queue. They are those of a queue if no other one of its type has such consumers; and if a total did
not rise, it did not rise for any of them.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

from ackscope.counters import MessageStats
from ackscope.findings import source
from ackscope.protocols import AMQP10, native_protocol
from ackscope.second_source import NativeTotals
from ackscope.snapshot import Queue
from diagnosis.contract import ConsumerPath, View
from diagnosis.hold_time import may_hold
from diagnosis.ledger import ledger
from diagnosis.memo import per_view
from diagnosis.purpose import MQTT_SESSIONS
from diagnosis.series import nearest, span
from diagnosis.unattributed import TOTALS, counted, gained, of_type, own_probes_connected, totals
from diagnosis.window import Series, Timestamped

RETURNED_BY = source(
    TOTALS, "rabbitmq_global_messages_redelivered_total", "rabbitmq_global_messages_delivered_total"
) + source(TOTALS, "rabbitmq_global_messages_acknowledged_total")
DELETED_BY = {
    "expired": source(TOTALS, "rabbitmq_global_messages_dead_lettered_expired_total"),
    "over_length": source(TOTALS, "rabbitmq_global_messages_dead_lettered_maxlen_total"),
    "rejected": source(TOTALS, "rabbitmq_global_messages_dead_lettered_rejected_total"),
    "over_limit": source(TOTALS, "rabbitmq_global_messages_dead_lettered_delivery_limit_total"),
}
"""Reason for which queues without a dead-letter exchange delete messages -> the metric that counts them."""

_LATE = 7.0
"""Seconds by which counters of a queue are older than totals: the broker refreshes them every 5 s, and some delay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """Messages that queues of one type without a dead-letter exchange deleted.

    Attributes:
        least: how many of them were deleted for AMQP 1.0 consumers at least.
        series: the readings in which they were.
        queues: the queues that may have deleted them.
    """

    least: int
    series: Series[NativeTotals]
    queues: tuple[Queue, ...]

    @property
    def seconds(self) -> float:
        """How long it was seen."""
        return span(self.series)


def none_returned(view: View, queue: Queue) -> bool:
    """Return whether it is known that no AMQP 1.0 consumer of queues of this type got a message again."""
    series = _since_alike(view, queue.type)
    return span(series) >= view.thresholds.early and gained(series, of_type(queue.type, "redelivered")) == 0


def returns(view: View, queue: Queue) -> bool | None:
    """Return whether AMQP 1.0 consumers of queues of this type get many messages again; None if that is unknown."""
    series = _since_alike(view, queue.type)
    again = gained(series, of_type(queue.type, "redelivered"))
    if again is None or span(series) < view.thresholds.early:
        return None
    return again > view.limits(queue).consumers.requeue_rate * span(series)


def sole_history(view: View, queue: Queue) -> Series[Queue]:
    """Return a queue at the readings of the totals, with these as its counters; () if others of its type contribute."""
    if [each.key for each in per_view(view, _by_type).get(queue.type or "", ())] != [queue.key]:
        return ()
    history, found = view.history(queue), list[Timestamped[Queue]]()
    for seen in _since_alike(view, queue.type) if history else ():
        known = seen.value.types.get(queue.type or "")
        near = nearest(history, seen.at)
        if known is None or abs(near.at.since(seen.at)) > view.thresholds.interval:
            continue
        stats = MessageStats(
            deliver=known.delivered, deliver_get=known.delivered, redeliver=known.redelivered, ack=known.accepted
        )
        found.append(Timestamped(seen.at, replace(near.value, stats=stats)))
    return tuple(found)


def deleted(view: View, kind: str, name: str, candidates: Iterable[Queue]) -> Deleted | None:
    """Return what queues of a type deleted for AMQP 1.0 consumers; None if the total is unknown.

    Args:
        view: the view that is judged.
        kind: the type of the queues.
        name: `rejected` or `over_limit`.
        candidates: the queues with such consumers that may have deleted them.
    """
    read, number = view.window.readings("queues"), of_type(kind, name)
    known = counted(view)
    if known and number(known[-1].value) == 0:
        return Deleted(least=0, series=known[-1:], queues=tuple(candidates))
    if not read or len(view.queues) < len(view.all_queues) or any(each.details_at for each in view.queues):
        # What queues without fresh counters deleted for AMQP 0-9-1 consumers is unknown.
        return None
    # The counters of queues are older than the totals.
    series = tuple(each for each in _since_alike(view, kind) if read[-1].at.since(each.at) >= _LATE)
    total = gained(series, number)
    if total is None or (not total and span(series) < view.thresholds.early):
        return None
    if own_probes_connected(view):
        return None
    if total:
        # Consumers of AMQP 0-9-1 are counted by their queues as well.
        total -= sum(_discarded(view, each) for each in view.queues if each.type == kind and _counts(each))
    start = max((at for at, seen in enumerate(series) if number(seen.value) == number(series[0].value)), default=0)
    return Deleted(least=max(0, total), series=series[start:], queues=tuple(candidates))


def _since_alike(view: View, kind: str | None) -> Series[NativeTotals]:
    """Return the totals since the last time at which a queue of a type lost its consumers, or was deleted."""
    began = per_view(view, _left_at).get(kind or "", 0.0)
    links = [link for queue in per_view(view, _by_type).get(kind or "", ()) for link in view.links(queue)]
    reported = all(link.session is not None for link in links if _is_native(view, link))
    known = per_view(view, _since_any_left) if links and reported else totals(view)
    return tuple(each for each in known if each.at.mono >= began)


def _since_any_left(view: View) -> Series[NativeTotals]:
    """Return the totals since a link of an AMQP 1.0 consumer was last detached.

    Readings of sessions are held for longer than those of connections, and show no publishers and no other protocols.
    """
    read = view.window.readings("sessions")
    consuming = [{(*it.key, link.handle, link.name) for it in seen.value for link in it.consuming} for seen in read]
    left = [newer.at for newer, was, now in zip(read[1:], consuming, consuming[1:], strict=False) if was - now]
    began = left[-1].mono if left else read[0].at.mono - view.thresholds.interval
    return tuple(each for each in counted(view) if each.at.mono >= began)


def _left_at(view: View) -> dict[str, float]:
    """Return, by type, when a queue last lost all its consumers or was deleted with some, on the monotonic clock."""
    found: dict[str, float] = {}
    for older, newer in pairwise(view.window.readings("queues")) if totals(view) else ():
        same = set(map(id, newer.value))
        changed = [queue for queue in older.value if queue.consumers and id(queue) not in same]
        now = {queue.key: queue.consumers for queue in newer.value} if changed else {}
        for queue in changed:
            if now.get(queue.key, 0) == 0:
                # The totals are as new as their reading, and the queues are up to some seconds older.
                found[queue.type or ""] = newer.at.mono
    return found


def _counts(queue: Queue) -> bool:
    return bool(queue.stats.deliver or queue.stats.get) and queue.setting("dead-letter-exchange") is None


def _discarded(view: View, queue: Queue) -> int:
    """Return how many messages a queue deleted at most after they were delivered to AMQP 0-9-1 consumers."""
    found = ledger(view.history(queue), may_hold(view, queue))
    return 0 if found is None else max(0, found.discarded) + (found.discarded_error if found.discarded > 0 else 0)


def _by_type(view: View) -> dict[str, list[Queue]]:
    found: dict[str, list[Queue]] = defaultdict(list)
    for queue in filter(view.has_uncounted, view.every_queue):
        if not queue.name.startswith(MQTT_SESSIONS) and any(_is_native(view, link) for link in view.links(queue)):
            found[queue.type or ""].append(queue)
    return found


def _is_native(view: View, link: ConsumerPath) -> bool:
    """Return whether a consumer may use AMQP 1.0."""
    if not link.is_uncounted or link.stream is not None:
        return False
    known = view.every_connection if link.connection is None else (link.connection,)
    return any(native_protocol(each.protocol) == AMQP10 for each in known)
