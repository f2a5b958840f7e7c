"""Compares the limit of queues of each virtual host with its queues, and finds the clients that run into it.

Seen on 3.10.8 and 4.3.6: a declare above the limit is refused with 406, which closes the channel, and counts as
`queue_declared` but not as `queue_created`. The text on the wire holds the name of the queue, and so does the declare:
both lengths together distinguish it from other errors. A client that closes its whole connection at the error leaves
no bytes; then only the cluster's counters fit or do not.
"""

from collections import Counter
from dataclasses import dataclass, replace

from ackscope.snapshot import Queue
from ackscope.topology import Limit
from diagnosis.churn import ChurnRate, churn_rate
from diagnosis.churn_loops import ChurnLoop, churn_loops, cluster_cycles, text_bytes
from diagnosis.contract import View
from diagnosis.loop_bytes import CLOSE, OPEN_OK
from diagnosis.memo import per_view
from diagnosis.rules.clients._shared.loops import FEW_MESSAGES, MIN_PER_CYCLE, MOST_CONNECTIONS
from diagnosis.series import last
from diagnosis.window import Series

MAX_QUEUES = "max-queues"
_CLIENT_BYTES = 13 + 20 + 12
"""Bytes of channel.open, of queue.declare without name and arguments, and of channel.close-ok."""
_GROWTH_SECONDS = 120.0
_GENERATED_NAME = 30
"""Bytes of a name that the broker chooses: "amq.gen-" and 22 characters. The declare then has an empty name."""
_LONGEST_NAME = 255
_LONGEST_TEXT = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLimitUse:
    """The queues of a virtual host under its limit.

    Attributes:
        used: queues of the virtual host; None if unknown, because the user may not see them.
        growth: queues more than two minutes ago, if their number still grows; a burst that is over is none.
        growth_seconds: time of that growth.
        loops: clients whose loops fit a refused declare here.
        unlisted: connections that are too brief to be listed and fit; None if there are none.
    """

    limit: Limit
    used: int | None
    growth: int = 0
    growth_seconds: float = 0.0
    loops: tuple[ChurnLoop, ...] = ()
    unlisted: ChurnRate | None = None

    @property
    def full(self) -> bool:
        """Whether the next declare is refused."""
        return self.used is not None and self.used >= self.limit.value

    @property
    def refuses(self) -> bool:
        """Whether clients seem to run into the limit."""
        return bool(self.loops) or self.unlisted is not None


def queue_limits(view: View) -> tuple[QueueLimitUse, ...]:
    """Return the use of every queue limit, by virtual host."""
    return per_view(view, _queue_limits)


def refused_by_limit(view: View, loop: ChurnLoop) -> bool:
    """Return whether a loop fits the refusals of a queue limit that is used up."""
    return any(loop in use.loops for use in queue_limits(view))


def _queue_limits(view: View) -> tuple[QueueLimitUse, ...]:
    limits = sorted(
        (each for each in view.limits_set if each.scope == "vhost" and each.name == MAX_QUEUES and each.value >= 0),
        key=lambda each: each.subject,
    )
    if not limits:
        return ()
    readings: Series[tuple[Queue, ...]] = view.window.readings("queues") if view.fresh("queues") else ()
    readings = last(readings, _GROWTH_SECONDS)
    # Two halves: what grew in the first one only has ended.
    marks = (readings[0], readings[len(readings) // 2], readings[-1]) if readings else ()
    counts = [Counter(queue.vhost for queue in seen.value) for seen in marks]
    uses = [_use(view, limit, counts, readings) for limit in limits]
    full = [use for use in uses if use.full]
    return tuple(_with_clients(view, use, only=len(full) == 1) if use.full else use for use in uses)


def _use(view: View, limit: Limit, counts: list[Counter[str]], readings: Series[tuple[Queue, ...]]) -> QueueLimitUse:
    if not counts or not _is_visible(view, counts[-1], limit.subject):
        return QueueLimitUse(limit=limit, used=None)
    before, between, now = (count[limit.subject] for count in counts)
    growth = now - before if before < between < now else 0
    return QueueLimitUse(
        limit=limit,
        used=now,
        growth=growth,
        growth_seconds=readings[-1].at.since(readings[0].at),
    )


def _is_visible(view: View, count: Counter[str], vhost: str) -> bool:
    """Return whether the list of queues holds those of a virtual host.

    The API lists virtual hosts and their limits, but not the queues of those for which its user has no permission.
    """
    latest = view.window.latest
    return count[vhost] > 0 or (latest is not None and latest.hidden_queues == 0)


def _with_clients(view: View, use: QueueLimitUse, *, only: bool) -> QueueLimitUse:
    cycles = cluster_cycles(view)
    if cycles is None or view.lists_no_clients:
        return use
    early = view.thresholds.early
    loops = churn_loops(view)
    declares = cycles.declares * cycles.rate
    vain = cycles.declares >= MIN_PER_CYCLE and cycles.messages < FEW_MESSAGES
    fitting = [
        loop
        for loop in loops
        if loop.lasts >= early
        and loop.connection.vhost == use.limit.subject
        and (_is_refused(loop, use.limit, declares) or (vain and _may_be_refused(loop, use.limit)))
    ]
    unknown = only and cycles.connection_declares >= MOST_CONNECTIONS and not any(loop.whole for loop in loops)
    unlisted = churn_rate(view, "connection") if vain and unknown else None
    if unlisted is not None and (unlisted.lasts < early or unlisted.rate < view.thresholds.clients.vain_rate):
        unlisted = None
    return replace(
        use, loops=tuple(sorted(fitting, key=lambda loop: (loop.client, loop.connection.name))), unlisted=unlisted
    )


def _is_refused(loop: ChurnLoop, limit: Limit, declares: float) -> bool:
    """Return whether the bytes of a loop are those of a declare above the limit."""
    if loop.error is None or loop.received is None or declares < MIN_PER_CYCLE * loop.rate:
        return False
    name = loop.error - shortest_text(limit)
    if not 1 <= name <= _LONGEST_NAME:
        return False
    # A text that is cut hides the length of the name.
    needed = _CLIENT_BYTES + (0 if name == _GENERATED_NAME or loop.error >= _LONGEST_TEXT else name)
    return loop.received >= needed - 1


def _may_be_refused(loop: ChurnLoop, limit: Limit) -> bool:
    """Return whether a loop declares in vain and nothing that is known of it speaks against a refusal."""
    if loop.whole:
        return True
    if loop.by_broker is False or loop.error is not None or loop.sent is None:
        return False
    return loop.sent > OPEN_OK + CLOSE + shortest_text(limit)


def shortest_text(limit: Limit) -> int:
    """Return the length of the broker's error text for a queue without a name."""
    why = f"queue limit in vhost '{limit.subject}' ({limit.value}) is reached"
    return text_bytes(f"PRECONDITION_FAILED - cannot declare queue '': {why}")
