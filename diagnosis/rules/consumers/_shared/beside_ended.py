"""Consumers that hold all that they were sent, while others of the same queue end and return what they held.

The law of a standstill takes a redelivery as a settled delivery: the consumer may have requeued it. Where the consumers
that stay hold all that they ever got, it came from others, whose connections ended. Then redeliveries settle nothing:
no message of the queue is done with, however many clients come and go. A client that dies on a message and leaves some
of its connections open looks like this.

A deployment returns messages as well, each consumer once. So the messages that came back must be more than all that are
held, or what is held must grow.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from ackscope.findings import Finding
from ackscope.snapshot import Queue
from diagnosis.churn_loops import churn_loops
from diagnosis.contract import ConsumerPath, Relation, View
from diagnosis.hold_time import prefetch
from diagnosis.rules.clients._shared.connections import age_seconds
from diagnosis.rules.consumers._shared.consequences import client_keys
from diagnosis.rules.consumers._shared.sessions import StuckConsumer
from diagnosis.rules.consumers._shared.standstill import handling_time, held, longer_than_jobs, never_falls, ready
from diagnosis.series import count, delta, readings_since, span, stretch
from diagnosis.window import Series

_SETTLED = 8.0
"""Seconds after which the counters of a new connection are those of the broker, which refreshes them every 5 s."""
_GROWN = 1.2
"""How many times what was held before is a growth; numbers of one queue may differ by a tenth."""


@dataclass(frozen=True, slots=True)
class BesideEnded:
    """Consumers that stay and settle nothing, beside others that end.

    Attributes:
        stuck: those that stay.
        full: each holds as many messages as its prefetch allows.
        series: readings of the queue in which nothing was settled.
        redelivered: messages that came back from consumers that ended, during these readings.
    """

    stuck: list[StuckConsumer]
    full: bool
    series: Series[Queue]
    redelivered: int


def beside_ended(view: View, queue: Queue, links: tuple[ConsumerPath, ...]) -> BesideEnded | None:
    """Return the consumers of a queue that settle nothing beside others that end; None without both.

    Args:
        view: the view that is being judged.
        queue: its acknowledgements do not move.
        links: its consumers.
    """
    limits, ages = view.limits(queue), [age_seconds(view, link.connection) for link in links]
    staying = [link for link, age in zip(links, ages, strict=True) if age >= _SETTLED and _held(link)]
    if not queue.stats.redeliver or not staying or not all(_keeps_all(view, link) for link in links):
        return None
    names = {link.consumer.connection_name for link in staying}
    if any(not loop.whole and loop.connection.name in names for loop in churn_loops(view)):
        # Its channels end, so those that are there now may be as short-lived.
        return None
    if any(_replaced_its_channel(view, link) for link in staying):
        # What came back may have been its own, such as after an acknowledgement timeout.
        return None
    # What came back before the oldest of them connected may have been theirs.
    history = readings_since(view.history(queue), view.now.mono - max(ages) + _SETTLED)
    series = stretch(never_falls(history, held), lambda older, newer: delta((older, newer), "ack") == 0)
    redelivered, seen = delta(series, "redeliver"), span(series)
    grows = len(series) > 1 and held(queue) > _GROWN * held(series[0].value)
    if seen < limits.consumers.stuck_seen or not redelivered or not (grows or redelivered > held(queue)):
        return None
    allowed = [prefetch(view, link) or 0 for link in staying]
    full = ready(queue) > 0 and all(0 < most <= _held(link) for link, most in zip(staying, allowed, strict=True))
    usual = handling_time(view.history(queue), series)
    need = limits.consumers.stuck_for if usual else limits.consumers.stuck_never_acked
    need = need if full and max(allowed) > 1 else limits.consumers.stuck_long
    need = longer_than_jobs(need, usual, limits.consumers)
    early = seen < need
    if early and seen < limits.early:
        return None
    since = series[0].at.wall
    return BesideEnded(
        [StuckConsumer(*each, seen, seen, need, since, early=early) for each in zip(staying, allowed, strict=True)],
        full,
        series,
        redelivered,
    )


def _held(link: ConsumerPath) -> int:
    return held(link.channel) if link.channel is not None else 0


def _keeps_all(view: View, link: ConsumerPath) -> bool:
    """Return whether a channel holds all that it was sent and did not acknowledge; that of a new one is not known."""
    if age_seconds(view, link.connection) < _SETTLED:
        return True
    if link.channel is None:
        return False
    history = view.channel_history(link.channel.name)
    if len(history) > 1:
        unsettled = delta(history, "deliver", "get") - delta(history, "ack")
        return unsettled <= held(history[-1].value) - held(history[0].value)
    return count(link.channel.stats, "deliver", "get") - count(link.channel.stats, "ack") <= held(link.channel)


def _replaced_its_channel(view: View, link: ConsumerPath) -> bool:
    """Return whether a consumer is on a channel that its connection opened late, after another one ended."""
    if link.channel is None or link.connection is None:
        return False
    listed = view.connection_history(link.connection.name)
    return bool(listed) and view.now.since(listed[0].at) > view.longest_open(link.channel) + _SETTLED


def _ending(view: View, finding: Finding) -> Iterable[Hashable]:
    return client_keys(view, finding) if finding.facts.get("returned") else ()


CONNECTIONS_THAT_END = Relation(_ending, client_keys)
"""The cause is a queue whose messages come back; the effect is about the client whose connections end."""
