"""Consumers that use AMQP 1.0: the broker keeps no counters of them, but tells what each session was sent and holds.

From 4.1 on it reports the credit and the delivery count of each link, and the unsettled deliveries of each session, all
in one answer of the process that serves the session. So what a session has settled is what it was sent, less what it
holds: an exact count, for which `standstill` has the law.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ackscope.amqp10 import AmqpSession
from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.findings import Evidence, Fact, Inconclusive, Unit, source
from ackscope.snapshot import Channel, Queue
from diagnosis.contract import ConsumerPath, View
from diagnosis.facts import consumer_facts, queue_names
from diagnosis.memo import per_view
from diagnosis.preconditions import unlisted_consumers, unread
from diagnosis.rules.clients._shared.connections import age_seconds
from diagnosis.rules.consumers._shared.standstill import handling_time, held, longer_than_jobs, most_held, unsettled
from diagnosis.series import delta, life, span, stretch
from diagnosis.window import Series, Timestamped

BLOCKED = {"blocked", "blocking"}
"""States of a connection under an alarm, whose acknowledgements the broker does not read."""

SESSIONS = "/api/connections/{name}/sessions"
SETTLED_BY = source(SESSIONS, "outgoing_unsettled_deliveries", "outgoing_links.delivery_count")
"""The fields that tell how many messages sessions settled."""

_MANY = 20
"""Messages held and none ever settled: more than a handler usually takes at once."""


@dataclass(frozen=True, slots=True)
class StuckConsumer:
    """A consumer that holds messages and settles none.

    Attributes:
        prefetch: how many it may hold; 0 is no limit. With AMQP 1.0: how many it holds if its credit is used up, or 0.
        seen_seconds: how long that was observed.
        held_seconds: minimum duration.
        warning_after_seconds: from this duration on it is more than information.
        since: wall clock, seconds since 1970.
        early: too short to be more than information.
        never_settled: none was settled since its link was attached.
    """

    link: ConsumerPath
    prefetch: int
    seen_seconds: float
    held_seconds: float
    warning_after_seconds: float
    since: float
    early: bool = False
    never_settled: bool = False


def session_flow(view: View, session: AmqpSession) -> Series[Channel]:
    """Return a session at each reading since its present links were attached, with counters like those of a channel.

    `deliver` is what it was sent to be settled, `ack` is what it settled with any outcome, and `messages_unacked` is
    what it holds. Empty if the broker does not tell these.
    """
    readings = stretch(view.session_history(session), lambda older, newer: _links(older.value) == _links(newer.value))
    found = []
    for seen in readings:
        counts = [link.delivery_count for link in seen.value.consuming if not link.settled_by_sender]
        holds = seen.value.unsettled
        if holds is None or None in counts:
            return ()
        sent = sum(each or 0 for each in counts)
        if sent < holds:
            # A link was detached and its messages are still held, or the count of a link passed its largest number.
            return ()
        stats = MessageStats(deliver=sent, ack=sent - holds)
        found.append(Timestamped(seen.at, Channel(name="", messages_unacked=holds, stats=stats)))
    return tuple(found)


def _links(session: AmqpSession) -> list[tuple[int, str | None, str | None]]:
    return sorted((link.handle, link.name or "", link.queue or "") for link in session.consuming)


def arrivals(history: Series[Queue]) -> int:
    """Return how many messages at least arrived in a queue of which nothing is settled; 0 if it did not grow."""
    if not history:
        return 0
    return max(0, (history[-1].value.messages or 0) - (history[0].value.messages or 0))


def from_before(history: Series[Queue], wall: float) -> Series[Queue]:
    """Return the readings since a time, from the last one before it on, because sessions are read after queues."""
    start = max((place for place, seen in enumerate(history) if seen.at.wall <= wall), default=0)
    return history[start:]


def may_take(links: tuple[ConsumerPath, ...]) -> int | None:
    """Return how many messages AMQP 1.0 consumers may hold now: what they hold and their credit; None if unknown."""
    sessions = {link.session.key: link.session for link in links if link.session}
    known = [link.consumer.credit for link in links] + [session.unsettled for session in sessions.values()]
    return None if not links or None in known else sum(each or 0 for each in known)


def counted_history(view: View, queue: Queue, links: tuple[ConsumerPath, ...]) -> Series[Queue]:
    """Return the history of a queue with the counters that sessions tell, if they serve this queue only; else nothing.

    `publish` follows from the balance: what is there, and what was settled.
    """
    sessions = {link.session.key: link.session for link in links if link.session}
    if any(each.queue != queue.name for session in sessions.values() for each in session.consuming):
        return ()
    flows = [session_flow(view, session) for session in sessions.values()]
    found: list[Timestamped[Queue]] = []
    published = 0
    for seen in view.history(queue) if flows and all(flows) else ():
        near = [min(flow, key=lambda each: abs(each.at.since(seen.at))) for flow in flows]
        if any(abs(each.at.since(seen.at)) > view.thresholds.interval for each in near):
            continue
        acked, sent = (sum(getattr(each.value.stats, name) for each in near) for name in ("ack", "deliver"))
        # The broker refreshes the totals of a queue every 5 s, so the balance may fall for a moment.
        published = max(published, acked + (seen.value.messages or 0))
        stats = MessageStats(publish=published, deliver=sent, ack=acked)
        found.append(Timestamped(seen.at, replace(seen.value, stats=stats)))
    return life(tuple(found))


def sessions_at_standstill(view: View, queue: Queue, links: tuple[ConsumerPath, ...]) -> list[StuckConsumer]:
    """Return the consumers of a queue whose sessions hold messages and settle none for longer than handling takes."""
    found = (_at_standstill(view, queue, link) for link in links)
    return [each for each in found if each is not None]


def _at_standstill(view: View, queue: Queue, link: ConsumerPath) -> StuckConsumer | None:
    if link.session is None or (link.connection is not None and link.connection.state in BLOCKED):
        return None
    limits = view.limits(queue)
    flow = session_flow(view, link.session)
    stalled = unsettled(flow)
    seen = span(stalled)
    if not stalled or not held(stalled[-1].value) or seen < limits.consumers.stuck_seen:
        return None
    holds, never = held(stalled[-1].value), not stalled[-1].value.stats.ack
    usual, most = handling_time(flow, stalled), most_held(flow, stalled)
    full, ready = link.consumer.credit == 0, queue.messages_ready or 0
    unknown = limits.consumers.stuck_never_acked if never else limits.consumers.stuck_unknown
    need = quick = limits.consumers.stuck_for if usual else max(limits.consumers.stuck_for, unknown)
    if holds == 1:
        need = limits.consumers.stuck_long if ready else limits.consumers.stuck_long_job
    elif not full or not ready:
        # It asked for more than it holds: it may collect a batch.
        need = limits.consumers.stuck_long_job if holds <= most else limits.consumers.stuck_long
    need = longer_than_jobs(need, usual, limits.consumers)
    held_seconds = max(seen, _filled_for(view, queue, link, stalled)) if never else seen
    early = held_seconds < need
    if early and (held_seconds < limits.early or (need > quick and not (never and holds >= _MANY))):
        return None
    return StuckConsumer(
        link=link,
        prefetch=holds if full else 0,
        seen_seconds=seen,
        held_seconds=held_seconds,
        warning_after_seconds=need,
        since=stalled[0].at.wall,
        early=early,
        never_settled=never,
    )


def _filled_for(view: View, queue: Queue, link: ConsumerPath, stalled: Series[Channel]) -> float:
    """Return for how long a session that never settled has held messages, by the rate at which they come, or 0."""
    seconds, gained = span(stalled), delta(stalled, "deliver")
    age = age_seconds(view, link.connection)
    if gained > 0:
        return min(age, held(stalled[-1].value) * seconds / gained)
    during = from_before(view.history(queue), stalled[0].at.wall)
    grown = arrivals(during)
    return min(age, (queue.messages_ready or 0) * span(during) / grown) if grown else 0.0


def session_evidence(link: ConsumerPath) -> Evidence:
    """What one consumer that uses AMQP 1.0 holds; the entry `session` of a page."""
    session = link.session
    return Evidence(
        key="session",
        value=session.unsettled if session else None,
        unit=Unit.MESSAGES,
        source=source(
            SESSIONS, "outgoing_unsettled_deliveries", "outgoing_links.credit", "outgoing_links.delivery_count"
        )
        + source("/api/connections", "container_id"),
        facts={
            "held_by": consumer_facts(link),
            "credit": link.consumer.credit,
            "links": len(session.consuming) if session else 0,
            "delivered": sum(each.delivery_count or 0 for each in session.consuming) if session else None,
            "container": link.connection.container_id if link.connection else None,
        },
    )


def unreported(view: View, rule: str, judged: Callable[[Queue], bool] | None = None) -> Iterator[Inconclusive]:
    """Yield why consumers of a protocol other than AMQP 0-9-1 cannot be judged, if the broker tells nothing of them.

    Args:
        view: the view that is judged.
        rule: its name.
        judged: which queues it judges; all but streams without.
    """
    if view.has_native_amqp10:
        # Nothing else shows which queues have such consumers.
        yield from tuple(unread(rule, view, ("consumers",))) or unlisted_consumers(rule, view)
    names = queue_names(queue for queue in per_view(view, _unreported) if judged is None or judged(queue))
    if names:
        version = view.version
        facts: dict[str, Fact] = {
            "queues": len(names),
            "names": names,
            "too_old": version is not None and version < (4, 1),
            "error": view.error("sessions"),
        }
        yield Inconclusive(rule=rule, reason="sessions_not_reported", facts=facts)


def _unreported(view: View) -> tuple[Queue, ...]:
    return tuple(
        queue
        for queue in view.uncounted_queues
        if queue.type != "stream" and any(_is_unreported(view, link) for link in view.links(queue))
    )


def sent_settled(view: View, session: AmqpSession) -> int:
    """Return how many messages a session was sent that count as settled at once, over its readings."""
    history = stretch(view.session_history(session), lambda older, newer: _links(older.value) == _links(newer.value))
    ends = [
        sum(each.delivery_count or 0 for each in seen.value.consuming if each.settled_by_sender) for seen in history
    ]
    return max(0, ends[-1] - ends[0]) if ends else 0


def settled_during(view: View, session: AmqpSession, first: Instant, latest: Instant) -> int | None:
    """Return how many messages a session settled at most between two moments; None if unknown."""
    flow = session_flow(view, session)
    before = [seen.value.stats.ack or 0 for seen in flow if seen.at.mono <= first.mono]
    after = [seen.value.stats.ack or 0 for seen in flow if seen.at.mono >= latest.mono]
    return after[0] - (before[-1] if before else 0) if after else None


def settles_uncounted(view: View, link: ConsumerPath) -> bool:
    """Return whether a consumer settles messages, and the broker does not count with which outcome."""
    if link.session is None:
        return link.consumer.ack_required is not False and _is_unreported(view, link)
    flow = session_flow(view, link.session)
    return bool(flow) and bool(flow[-1].value.stats.ack)


def _is_unreported(view: View, link: ConsumerPath) -> bool:
    """Return whether a consumer has neither a channel nor a session, and is not just new."""
    if not link.is_uncounted or link.session is not None:
        return False
    earlier = [seen.value for seen in view.window.readings("consumers")[-2:-1]]
    return not earlier or any(
        (each.vhost, each.queue, each.tag) == (link.consumer.vhost, link.consumer.queue, link.consumer.tag)
        for each in earlier[0]
    )
