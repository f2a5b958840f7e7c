"""Consumers that use MQTT: the broker counts neither what is published to their queues nor what they acknowledge.

From 3.12 on they have no channel. Each session with quality of service 1 has a queue of its own, and the broker tells
how many messages are unacknowledged there, how many the client may hold, and how many bytes its connection was sent. A
client that may hold no more gets the next message only after an acknowledgement. So if messages wait, its window is
full and its connection is sent nothing but answers to pings, then it acknowledges nothing.
"""

from collections.abc import Iterator
from math import ceil

from ackscope.findings import Fact, Inconclusive
from ackscope.snapshot import Connection, Queue
from diagnosis.contract import ConsumerPath, View
from diagnosis.rules.clients._shared.connections import age_seconds
from diagnosis.rules.consumers._shared.sessions import BLOCKED, StuckConsumer, arrivals, from_before
from diagnosis.rules.consumers._shared.standstill import held
from diagnosis.series import span, stretch
from diagnosis.window import Series, Timestamped

_PROTOCOLS = ("MQTT", "Web MQTT")
_PING = 2
"""Bytes of the answer to a ping. The smallest message has 7."""
_KEEP_ALIVE = 60


def is_mqtt(link: ConsumerPath) -> bool:
    """Return whether a consumer uses MQTT and has no channel, so that nothing of it is counted."""
    connection = link.connection
    has_protocol = connection is not None and (connection.protocol or "").startswith(_PROTOCOLS)
    return has_protocol and link.consumer.channel_name is None


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


def uncounted(view: View, rule: str) -> Iterator[Inconclusive]:
    """Yield which sessions fall behind while their client takes messages; how fast it does is not counted."""
    names = []
    clients: set[str] = set()
    for queue in view.queues:
        link = next((each for each in view.links(queue) if is_mqtt(each)), None) if queue.messages_unacked else None
        if link is None or not _is_full(queue, link) or not arrivals(view.history(queue)):
            continue
        if queue.messages_ready and mqtt_at_standstill(view, queue) is None:
            names.append(f"{queue.name!r} in vhost {queue.vhost!r}")
            clients.add((link.connection and link.connection.client_id) or "")
    if names:
        facts: dict[str, Fact] = {
            "queues": len(names),
            "names": list[Fact](sorted(names)),
            "clients": list[Fact](sorted(clients - {""})),
        }
        yield Inconclusive(rule=rule, reason="mqtt_not_counted", facts=facts)
