"""Consumers that use MQTT: the broker counts neither what is published to their queues nor what they acknowledge.

From 3.12 on they have no channel. Each session with quality of service 1 has a queue of its own, and the broker tells
how many messages are unacknowledged there, how many the client may hold, and how many bytes its connection was sent. A
client that may hold no more gets the next message only after an acknowledgement. So if messages wait, its window is
full and its connection is sent nothing but answers to pings, then it acknowledges nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import ceil

from ackscope.findings import Evidence, Fact, Finding, Inconclusive, Unit, source
from ackscope.protocols import MQTT, native_protocol
from ackscope.snapshot import Connection, Queue
from diagnosis.contract import ConsumerPath, View
from diagnosis.facts import consumer_facts, queue_names
from diagnosis.rules.clients._shared.connections import age_seconds
from diagnosis.rules.consumers._shared.backlog_finding import backlog_finding
from diagnosis.rules.consumers._shared.sessions import BLOCKED, StuckConsumer, arrivals, from_before
from diagnosis.rules.consumers._shared.standstill import held, ready
from diagnosis.series import last, rising, span, stretch
from diagnosis.window import Series, Timestamped

_PING = 2
"""Bytes of the answer to a ping. The smallest message has 7."""
_KEEP_ALIVE = 60


def is_mqtt(link: ConsumerPath) -> bool:
    """Return whether a consumer uses MQTT and has no channel, so that nothing of it is counted."""
    if link.connection is None or link.consumer.channel_name is not None:
        return False
    return native_protocol(link.connection.protocol) == MQTT


def _is_full(queue: Queue, link: ConsumerPath) -> bool:
    window = link.consumer.prefetch_count
    return bool(window) and held(queue) >= (window or 0)


def _quiet(older: Timestamped[Connection], newer: Timestamped[Connection]) -> bool:
    """Return whether a connection was sent nothing but answers to pings."""
    before, after = older.value, newer.value
    if None in (before.send_oct, after.send_oct, before.recv_oct, after.recv_oct):
        return False
    out, back = (after.send_oct or 0) - (before.send_oct or 0), (after.recv_oct or 0) - (before.recv_oct or 0)
    pings = ceil(newer.at.since(older.at) / (after.heartbeat or _KEEP_ALIVE)) + 1
    return 0 <= out <= min(back, _PING * pings)


def mqtt_at_standstill(view: View, queue: Queue) -> StuckConsumer | None:
    """Return the MQTT client that holds all it may of the queue of its session, and acknowledges none."""
    link = next((each for each in view.links(queue) if is_mqtt(each)), None)
    if link is None or link.connection is None or link.connection.state in BLOCKED or not _is_full(queue, link):
        return None
    limits, window = view.limits(queue), link.consumer.prefetch_count or 0
    quiet = stretch(view.connection_history(link.connection.name), _quiet)
    full: Series[Queue] = stretch(
        from_before(view.history(queue), quiet[0].at.wall) if quiet else (),
        lambda older, newer: (
            held(older.value) >= window and 0 < (older.value.messages_ready or 0) <= (newer.value.messages_ready or 0)
        ),
    )
    seen = min(span(quiet), span(full))
    if seen < limits.consumers.stuck_seen or not queue.messages_ready:
        return None
    grown = arrivals(full)
    if not grown:
        # Nothing arrives, so the client may hold a batch, or be done for today.
        return None
    # Its window is full since the oldest of the messages that wait now arrived, if it was connected then.
    piled_up = (queue.messages_ready or 0) * span(full) / grown
    held_seconds = max(seen, min(piled_up, age_seconds(view, link.connection)))
    need = max(limits.consumers.stuck_for, limits.consumers.stuck_unknown)
    early = held_seconds < need
    if early and held_seconds < limits.early:
        return None
    return StuckConsumer(
        link=link,
        prefetch=window,
        seen_seconds=seen,
        held_seconds=held_seconds,
        warning_after_seconds=need,
        since=view.now.wall - held_seconds,
        early=early,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowSession:
    """The queue of an MQTT session that grows although its client takes messages, and holds all that it may.

    Attributes:
        growing: the readings during which it grew.
    """

    queue: Queue
    link: ConsumerPath
    growing: Series[Queue]

    @property
    def growth_rate(self) -> float:
        """Messages per second that come in more than are acknowledged."""
        return arrivals(self.growing) / span(self.growing)


def slow_sessions(view: View) -> Iterator[SlowSession]:
    """Yield the sessions that fall behind while their client takes messages."""
    for queue, link in _falling_behind(view):
        limits = view.limits(queue)
        full = stretch(view.history(queue), partial(_stays_full, link.consumer.prefetch_count or 0))
        growing = rising(full, limits.interval, ready)
        connection = link.connection
        recent = last(view.connection_history(connection.name), limits.interval) if connection is not None else ()
        if span(growing) >= limits.early and len(recent) > 1 and _known(recent) and not _quiet(recent[0], recent[-1]):
            yield SlowSession(queue=queue, link=link, growing=growing)


def slow_finding(view: View, rule: str, found: SlowSession) -> Finding:
    """The finding about a session that falls behind, with the facts of the page of `slow-consumer`."""
    queue, link = found.queue, found.link
    window = link.consumer.prefetch_count
    return backlog_finding(
        view,
        rule,
        queue,
        link,
        found.growing,
        facts={
            "unacked": queue.messages_unacked,
            "prefetch": window,
            "prefetch_total": window,
            "round_trip_needed": True,
            "growth_rate": found.growth_rate,
            "mqtt": True,
        },
        evidence=(
            Evidence(
                key="ready", value=ready(queue), unit=Unit.MESSAGES, source=source("/api/queues", "messages_ready")
            ),
            Evidence(
                key="unacked",
                value=queue.messages_unacked,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "messages_unacknowledged") + source("/api/consumers", "prefetch_count"),
            ),
            Evidence(
                key="consumer",
                value=window,
                source=source("/api/consumers", "prefetch_count") + source("/api/connections", "send_oct", "recv_oct"),
                facts={"held_by": consumer_facts(link)},
            ),
        ),
    )


def _stays_full(window: int, older: Timestamped[Queue], _newer: Timestamped[Queue]) -> bool:
    return held(older.value) >= window


def _falling_behind(view: View) -> Iterator[tuple[Queue, ConsumerPath]]:
    """Yield the queues of sessions that grow while their client holds all that it may, and not because it is stuck."""
    for queue in view.queues:
        link = next((each for each in view.links(queue) if is_mqtt(each)), None) if queue.messages_unacked else None
        if link is None or not queue.messages_ready or not _is_full(queue, link) or not arrivals(view.history(queue)):
            continue
        if (link.connection is None or link.connection.state not in BLOCKED) and mqtt_at_standstill(
            view, queue
        ) is None:
            yield queue, link


def _known(history: Series[Connection]) -> bool:
    return all(None not in (seen.value.send_oct, seen.value.recv_oct) for seen in history)


def mqtt_not_counted(view: View, rule: str) -> Iterator[Inconclusive]:
    """Yield which sessions fall behind while it is not known whether their client takes messages."""
    unknown, clients = [], set()
    for queue, link in _falling_behind(view):
        if link.connection is not None and not _known(view.connection_history(link.connection.name)):
            unknown.append(queue)
            clients.add(link.connection.client_id or link.connection.name)
    if unknown:
        facts: dict[str, Fact] = {
            "queues": len(unknown),
            "names": queue_names(unknown),
            "clients": list[Fact](sorted(clients)),
        }
        yield Inconclusive(rule=rule, reason="mqtt_not_counted", facts=facts)
