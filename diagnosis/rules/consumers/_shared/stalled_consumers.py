"""Queues whose consumers hold messages and acknowledge none for longer than their handling takes.

Used by stuck-consumer and sac-stuck. Similar cases are left out: a slow consumer acknowledges now and then (the limit
follows its own rate and the size of its batches), a requeue loop redelivers, a connection blocked by an alarm cannot
acknowledge, an open transaction delays acknowledgements, and a standby of a single active consumer has nothing to
acknowledge. `standstill` has the law; here it is applied to whole queues, to some consumers, and to readers of streams.
`consumer_capacity` is not used: it is constant for quorum queues, and does not tell stuck from slow for classic ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from ackscope.snapshot import Channel, Connection, Queue
from diagnosis.contract import ConsumerPath, View
from diagnosis.hold_time import QUORUM_MOST, prefetch
from diagnosis.memo import per_view
from diagnosis.rules.consumers._shared.beside_ended import beside_ended
from diagnosis.rules.consumers._shared.idle_channels import channels_idle_for, channels_idle_since, full_for
from diagnosis.rules.consumers._shared.mqtt import is_mqtt, mqtt_at_standstill
from diagnosis.rules.consumers._shared.objects import may_hold_messages, one_gets_all, waiting_on_channel
from diagnosis.rules.consumers._shared.sessions import (
    BLOCKED,
    StuckConsumer,
    arrivals,
    from_before,
    sessions_at_standstill,
)
from diagnosis.rules.consumers._shared.standstill import (
    handling_time,
    held,
    jobs_were_quick,
    longer_than_jobs,
    most_held,
    refreshed,
    rose_step_by_step,
    unmoved,
    unsettled,
)
from diagnosis.rules.consumers._shared.stream_readers import flow, lag, readers, readers_at_standstill, standstill
from diagnosis.rules.consumers._shared.unattributed_consumers import Standing, judgement
from diagnosis.rules.consumers._shared.whole_prefetches import whole_prefetches
from diagnosis.series import delta, last, readings_since, span, stretch
from diagnosis.window import Series, Timestamped


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """Consumers that hold messages of a queue and acknowledge none.

    Attributes:
        early: too short to be more than information.
        stuck: the stuck consumers.
        prefetches: the prefetch of each; 0 is no limit.
        full: they hold as many as their prefetch allows.
        never_acked: none of their channels has acknowledged a message since it was opened.
        gathered: others were acknowledged while they filled their prefetch one after the other.
        consumers: how many consumers were judged.
        standbys: consumers that wait for the single active consumer to end.
        whole_queue: nothing is acknowledged at all; False if other consumers still work.
        growing: messages are ready, and more are published.
        published: messages published during the stall.
        seen_seconds: how long the stall was observed.
        held_seconds: minimum duration: as observed, or as long as the broker reports the channels idle.
        warning_after_seconds: from this duration on it is more than information.
        since: wall clock, seconds since 1970.
        amqp10: the stuck consumers use AMQP 1.0. `prefetches` is then what each holds if it is full, else 0.
        mqtt: the stuck consumer uses MQTT.
        suspects: connections that may be the stuck clients, if the broker does not report which ones are; see
            `unattributed_consumers`.
        held: messages that they hold at least; None if their channels or sessions tell it.
        settles_unknown: they hold more and more; they may settle fewer than they take, and not none.
        shared_prefetch, starved: what all consumers of their channel may hold, and its other queues with messages.
        outlasts_jobs: it lasts for much longer than each of the many jobs that were seen before.
        returned: messages that came back from consumers that ended meanwhile.
        lag: messages from the stuck reader of a stream that is furthest behind to the end, if readers are judged by
            their offsets; else None.
    """

    queue: Queue
    early: bool
    stuck: tuple[ConsumerPath, ...]
    prefetches: tuple[int, ...]
    full: bool
    never_acked: bool
    gathered: bool
    consumers: int
    standbys: int
    whole_queue: bool
    growing: bool
    published: int
    seen_seconds: float
    held_seconds: float
    warning_after_seconds: float
    since: float
    amqp10: bool = False
    mqtt: bool = False
    suspects: tuple[Connection, ...] = ()
    held: int | None = None
    settles_unknown: bool = False
    lag: int | None = None
    shared_prefetch: int = 0
    starved: tuple[Queue, ...] = ()
    outlasts_jobs: bool = False
    returned: int = 0

    @property
    def one_at_a_time(self) -> bool:
        """Whether every stuck consumer handles one message at a time; a long job looks the same."""
        return set(self.prefetches) == {1} and not self.outlasts_jobs


def stalls(view: View) -> tuple[Stall, ...]:
    """Return all stalls, in the order of the view."""
    return per_view(view, _stalls)


def _stalls(view: View) -> tuple[Stall, ...]:
    return tuple(_find(view))


def _find(view: View) -> Iterator[Stall]:
    """Judge every queue with consumers and unacknowledged messages: as a whole, else consumer by consumer."""
    for queue in view.queues:
        if not queue.consumers or (not queue.messages_unacked and queue.type != "stream"):
            continue
        if queue.type == "stream" and (behind := _behind(view, queue)) is not None:
            yield behind
            continue
        if any(is_mqtt(link) for link in view.links(queue)):
            # No counter of the queue moves, whatever the client does.
            session = _session(view, queue)
            if session is not None:
                yield session
            continue
        links = _judged(view, queue)
        if queue.type != "stream" and any(link.is_uncounted for link in view.links(queue)):
            # The counters of the queue are those of its AMQP 0-9-1 clients only.
            stall = _amqp10(view, queue) or _unattributed(view, queue)
            if stall is None and links and view.moved(queue, "ack"):
                stall = _some_consumers(view, queue, links)
            if stall is not None:
                yield stall
            continue
        if not links:
            continue
        if queue.type == "stream":
            stall = _some_readers(view, queue, links)
        elif view.moved(queue, "ack"):
            stall = _some_consumers(view, queue, links)
        else:
            stall = _whole_queue(view, queue, links)
            if stall is None or stall.early:
                stall = _beside_ended(view, queue, links) or stall
        if stall is not None:
            yield stall


def _judged(view: View, queue: Queue) -> tuple[ConsumerPath, ...]:
    """Return the AMQP 0-9-1 consumers that must and can acknowledge; empty if another cause explains it."""
    links = [
        link
        for link in view.links(queue)
        if link.consumer.ack_required is not False
        and not link.is_uncounted
        # 3.10 reports every reader of a stream as inactive.
        and (link.consumer.active is not False or queue.type == "stream")
    ]
    explained = any(
        (link.connection is None and bool(view.alarms))
        or (link.connection is not None and link.connection.state in BLOCKED)
        or (link.channel is not None and link.channel.acks_uncommitted)
        or prefetch(view, link) is None
        for link in links
    )
    return () if explained else tuple(links)


def _whole_queue(view: View, queue: Queue, links: tuple[ConsumerPath, ...]) -> Stall | None:
    """Return the stall of a queue if nothing is settled, and its consumers hold all they may or take more and more."""
    history = view.history(queue)
    limits = view.limits(queue)
    allowed = [prefetch(view, link) or 0 for link in links]
    unacked, ready = held(queue), queue.messages_ready or 0
    full = _is_full(queue, links, allowed)
    channels = {link.channel.name: link.channel.messages_unacked for link in links if link.channel is not None}
    if channels and all(count == 0 for count in channels.values()):
        # The queue counts them as unacknowledged but no channel holds them: the consumers did not cause that.
        return None
    stalled = unsettled(history)
    if full:
        stalled = stretch(stalled, lambda older, newer: delta((older, newer), "deliver") == 0)
    seen, idle = span(stalled), channels_idle_since(view, links)
    published = delta(stalled, "publish")
    if seen < limits.consumers.stuck_seen or (
        idle is None and not refreshed(view.window.readings("overview"), stalled)
    ):
        return None
    most = most_held(history, stalled)
    if not full and ready and delta(last(stalled, limits.interval), "deliver") == 0:
        # They could take more and get nothing, so they do not cause it.
        return None
    never_acked = all(link.channel is not None and not link.channel.stats.ack for link in links)
    # What they hold may be the batch that they collect; one that never grew and was never acknowledged is doubtful.
    gets_all = not full and delta(stalled, "deliver") > 0 and one_gets_all(links)
    only_held = not full and 0 not in allowed and (most == 0 or unacked <= 1.5 * most) and not (gets_all and most == 0)
    if only_held and not (never_acked and unacked > len(links) and delta(stalled, "deliver") == 0):
        return None
    usual, were_quick = handling_time(history, stalled), jobs_were_quick(history, stalled)
    unknown = limits.consumers.stuck_never_acked if never_acked else limits.consumers.stuck_unknown
    need = quick = limits.consumers.stuck_for if usual else max(limits.consumers.stuck_for, unknown)
    if not full and usual and unacked > 1.5 * most:
        # It acknowledged, and holds more than ever before.
        need = quick = max(limits.consumers.stuck_for, limits.consumers.stuck_unknown)
    elif not full or ready == 0:
        need = limits.consumers.stuck_long
    elif max(allowed) == 1:
        need = limits.consumers.stuck_long
        # One job may be much longer than others. If many were quick, it is worth information before.
        quick = need if were_quick else quick
    if (ready == 0 and unacked <= len(links)) or (not full and unacked <= most) or (gets_all and most == 0):
        need = limits.consumers.stuck_long_job
    need = longer_than_jobs(need, usual, limits.consumers)
    held_seconds = max(seen, channels_idle_for(view, idle))
    if only_held:
        # Long jobs look the same until the broker's own limit comes near.
        if held_seconds < limits.consumers.stuck_long:
            return None
        need = max(need, limits.consumers.ack_timeout_near * limits.consumers.ack_timeout_default)
    if full and never_acked:
        held_seconds = max(held_seconds, full_for(view, stalled, links))
    early, growing = held_seconds < need, published > 0 or ready > (stalled[0].value.messages_ready or 0)
    # Weaker evidence is reported early only if nothing contradicts it: a backlog grows, and no pace is known.
    known = need == quick or only_held or gets_all or _never_acked(queue)
    certain = known or (full and not usual and ready > 0 and growing)
    if early and (held_seconds < limits.early or not certain):
        return None
    shared = max((full and link.channel and link.channel.global_prefetch_count) or 0 for link in links)
    starved = waiting_on_channel(view, queue, links) if shared else ()
    return Stall(
        queue=queue,
        early=early,
        stuck=tuple(filter(may_hold_messages, links)),
        prefetches=tuple(most for link, most in zip(links, allowed, strict=True) if may_hold_messages(link)),
        full=full,
        never_acked=never_acked,
        gathered=full and rose_step_by_step(history, stalled),
        consumers=len(links),
        standbys=sum(link.consumer.active is False for link in view.links(queue)),
        whole_queue=True,
        growing=((ready > 0 or not full) and growing) or bool(starved),
        published=published,
        seen_seconds=seen,
        held_seconds=held_seconds,
        warning_after_seconds=need,
        since=stalled[0].at.wall if idle is None else min(idle, stalled[0].at.wall),
        shared_prefetch=shared,
        starved=starved,
        outlasts_jobs=were_quick and held_seconds >= limits.consumers.stuck_long_job,
    )


def _beside_ended(view: View, queue: Queue, links: tuple[ConsumerPath, ...]) -> Stall | None:
    """Return the stall of a queue whose messages come back from consumers that end, and are never settled."""
    found = beside_ended(view, queue, links)
    if found is None:
        return None
    published = delta(found.series, "publish")
    stall = _stall_of(view, queue, links, found.stuck, growing=bool(queue.messages_ready) and published > 0)
    return replace(stall, whole_queue=True, full=found.full, published=published, returned=found.redelivered)


def _is_full(queue: Queue, links: tuple[ConsumerPath, ...], allowed: list[int]) -> bool:
    """Return whether consumers hold as many messages as they may, by their own prefetch or by one that they share."""
    shared = [
        link.channel is not None
        and bool(link.channel.global_prefetch_count)
        and held(link.channel) >= (link.channel.global_prefetch_count or 0)
        for link in links
    ]
    most = QUORUM_MOST if queue.type == "quorum" else 0
    limit = [each or most for each in allowed]
    return all(shared) or (0 not in limit and held(queue) >= sum(limit))


def _never_acked(queue: Queue) -> bool:
    """Return whether many messages were delivered since the queue was declared, and none was acknowledged."""
    return not queue.stats.ack and held(queue) >= 20


def _amqp10(view: View, queue: Queue) -> Stall | None:
    """Return the stall of consumers that use AMQP 1.0; each is judged by its session: the queue has no counters."""
    links = tuple(link for link in view.links(queue) if link.consumer.active is not False)
    found = sessions_at_standstill(view, queue, tuple(link for link in links if link.session))
    if not found:
        return None
    first = min(each.since for each in found)
    arrived = arrivals(from_before(view.history(queue), first))
    whole = len(found) == len(links)
    return Stall(
        queue=queue,
        early=all(each.early for each in found),
        stuck=tuple(each.link for each in found),
        prefetches=tuple(each.prefetch for each in found),
        full=all(each.prefetch for each in found),
        never_acked=all(each.never_settled for each in found),
        gathered=False,
        consumers=len(links),
        standbys=sum(link.consumer.active is False for link in view.links(queue)),
        whole_queue=whole,
        growing=arrived > 0,
        published=arrived,
        seen_seconds=min(each.seen_seconds for each in found),
        held_seconds=min(each.held_seconds for each in found),
        warning_after_seconds=max(each.warning_after_seconds for each in found),
        since=first,
        amqp10=True,
    )


def _unattributed(view: View, queue: Queue) -> Stall | None:
    """Return the stall of AMQP 1.0 consumers without a reported session, by the figures of their queue."""
    found = judgement(view, queue)
    if found is None or found.standing not in {Standing.HOLDS, Standing.GROWS}:
        return None
    limits, holds, full = view.limits(queue), held(found.tail[-1].value), found.standing is Standing.HOLDS
    before = found.of.history[: len(found.of.history) - len(found.tail)]
    most = max((held(seen.value) for seen in before), default=0)
    need = limits.consumers.stuck_unknown if full else limits.consumers.stuck_long
    if holds == 1:
        need = limits.consumers.stuck_long
    elif not full and holds <= 1.5 * most:
        # It may collect a batch, as it did before.
        need = limits.consumers.stuck_long_job
    early = found.held_seconds < need
    if early and (found.held_seconds < limits.early or need == limits.consumers.stuck_long_job):
        return None
    links = found.of.links
    arrived = arrivals(found.tail)
    return Stall(
        queue=queue,
        early=early,
        stuck=links,
        prefetches=tuple((holds if full else 0) for _ in links),
        full=full,
        never_acked=False,
        gathered=False,
        consumers=len(links) if found.of.alone else queue.consumers or len(links),
        standbys=sum(link.consumer.active is False for link in view.links(queue)),
        whole_queue=found.of.alone,
        growing=arrived > 0,
        published=arrived,
        seen_seconds=span(found.tail),
        held_seconds=found.held_seconds,
        warning_after_seconds=need,
        since=found.since,
        amqp10=True,
        suspects=found.of.suspects,
        held=holds,
        settles_unknown=not found.proven,
    )


def _behind(view: View, queue: Queue) -> Stall | None:
    """Return the stall of the readers of a stream that use its protocol; each is judged by its own offset."""
    found = readers_at_standstill(view, queue)
    if not found:
        return None
    grown = [_grown(view, each) for each in found]
    return replace(
        _by_consumer(queue, readers(view, queue), found, max(grown)),
        lag=max((each.link.stream.offset_lag or 0) for each in found if each.link.stream is not None),
    )


def _grown(view: View, stuck: StuckConsumer) -> int:
    """Return how many messages were published to a stream while its reader stood still."""
    stalled = standstill(flow(view, stuck.link.stream)) if stuck.link.stream is not None else ()
    return lag(stalled[-1]) - lag(stalled[0]) if stalled else 0


def _session(view: View, queue: Queue) -> Stall | None:
    """Return the stall of the MQTT client of a session."""
    stuck = mqtt_at_standstill(view, queue)
    if stuck is None:
        return None
    arrived = arrivals(from_before(view.history(queue), stuck.since))
    return replace(_by_consumer(queue, (stuck.link,), [stuck], arrived), full=True, mqtt=True)


def _by_consumer(queue: Queue, links: tuple[ConsumerPath, ...], found: list[StuckConsumer], published: int) -> Stall:
    """Return the stall of consumers that were judged one by one."""
    return Stall(
        queue=queue,
        early=all(each.early for each in found),
        stuck=tuple(each.link for each in found),
        prefetches=tuple(each.prefetch for each in found),
        full=False,
        never_acked=all(each.never_settled for each in found),
        gathered=False,
        consumers=len(links),
        standbys=0,
        whole_queue=len(found) == len(links),
        growing=published > 0,
        published=published,
        seen_seconds=min(each.seen_seconds for each in found),
        held_seconds=min(each.held_seconds for each in found),
        warning_after_seconds=max(each.warning_after_seconds for each in found),
        since=min(each.since for each in found),
    )


def _some_readers(view: View, queue: Queue, links: tuple[ConsumerPath, ...]) -> Stall | None:
    """Return the stall of the readers of a stream that hold their prefetch; each reads all messages by itself."""
    limits, history = view.limits(queue).consumers, view.history(queue)
    # The counters of a stream are those of all its readers.
    quiet = span(stretch(history, lambda older, newer: delta((older, newer), "ack", "deliver") == 0))
    found = []
    for link in links:
        stalled = _stalled_channel(view, (link,))
        if stalled is None:
            continue
        seen, idle = max(span(stalled), quiet), channels_idle_since(view, (link,))
        held_seconds = max(seen, channels_idle_for(view, idle))
        growing = delta(last(history, max(seen, view.thresholds.interval)), "publish") > 0
        if seen >= limits.stuck_seen and growing and held_seconds >= limits.stuck_for:
            since = stalled[0].at.wall if idle is None else idle
            found.append(StuckConsumer(link, prefetch(view, link) or 0, seen, held_seconds, limits.stuck_for, since))
    return _stall_of(view, queue, links, found, growing=True) if found else None


def _some_consumers(view: View, queue: Queue, links: tuple[ConsumerPath, ...]) -> Stall | None:
    """Return the stall of the consumers that hold their full prefetch and acknowledge nothing while others work.

    If none has lasted for long enough, those that are full for some seconds are reported early.
    """
    limits, history = view.limits(queue).consumers, view.history(queue)
    found: list[StuckConsumer] = []
    for _, group in groupby(links, key=lambda link: link.consumer.channel_name):
        together = tuple(group)
        stalled = None if len(together) == len(links) else _stalled_channel(view, together)
        if stalled is None:
            continue
        seen, idle = span(stalled), channels_idle_since(view, together[:1])
        others = readings_since(history, stalled[0].at.mono)
        acked = delta(others, "ack")
        if seen < limits.stuck_seen or acked <= 0:
            continue
        lumps = whole_prefetches(history, min(prefetch(view, link) or 0 for link in links), len(links))
        # Each of the others takes this long for one message on average; this one gets a multiple of it.
        pace = span(others) * (len(links) - len(together)) / acked if lumps is None else lumps.seconds
        allowed = [prefetch(view, link) or 0 for link in together]
        need = max(limits.stuck_for, limits.stuck_patience * pace)
        need = limits.stuck_long_job if max(allowed) == 1 else min(need, limits.stuck_long_job)
        held_seconds = max(seen, channels_idle_for(view, idle))
        early = held_seconds < need
        shortest = max(view.limits(queue).early, limits.stuck_patience * pace)
        if early and (need == limits.stuck_long_job or held_seconds < shortest):
            continue
        since = stalled[0].at.wall if idle is None else idle
        found += [
            StuckConsumer(link, each, seen, held_seconds, need, since, early=early)
            for link, each in zip(together, allowed, strict=True)
        ]
    certain = [each for each in found if not each.early]
    return _stall_of(view, queue, links, certain or found, growing=False) if found else None


def _stalled_channel(view: View, links: tuple[ConsumerPath, ...]) -> Series[Channel] | None:
    """Return the readings in which a channel held all that its consumers of one queue may, and nothing moved."""
    channel = links[0].channel
    allowed = [prefetch(view, link) or 0 for link in links]
    if channel is None or 0 in allowed or channel.consumer_count != len(links) or held(channel) < sum(allowed):
        return None
    return stretch(view.channel_history(channel.name), partial(_full_and_unchanged, sum(allowed)))


def _stall_of(
    view: View, queue: Queue, links: tuple[ConsumerPath, ...], found: list[StuckConsumer], *, growing: bool
) -> Stall:
    published = delta(view.history(queue), "publish")
    never = all(each.link.channel is not None and not each.link.channel.stats.ack for each in found)
    return replace(_by_consumer(queue, links, found, published), full=True, never_acked=never, growing=growing)


def _full_and_unchanged(prefetch_count: int, older: Timestamped[Channel], newer: Timestamped[Channel]) -> bool:
    return held(older.value) >= prefetch_count and unmoved(older, newer)
