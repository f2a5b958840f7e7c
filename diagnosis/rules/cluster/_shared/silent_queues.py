"""Quorum queues that probably have no leader although the broker still lists one: its statistics stay as they were.

The broker's check names no queue. A queue without a leader takes, gives and confirms nothing, so its counters stand
still, and a publisher of its virtual host waits for a confirm. An idle queue stands still as well: it is only named
where few can be meant, and if it moved before the check failed, as far as that was seen.
Seen on 4.3.6 with the only member stopped: leader, members and online stay in `/api/queues`.
"""

from dataclasses import dataclass

from ackscope.clock import Instant
from ackscope.snapshot import Channel, Queue
from diagnosis.contract import View
from diagnosis.memo import per_view
from diagnosis.rules.nodes._shared.node_history import failed_readings
from diagnosis.series import delta, span

CHECK = "quorum-queues-without-elected-leaders"

_MOST = 3
"""More queues that stand still are idle for the most part."""
_LATE, _RECENT, _WATCHED = 20.0, 60.0, 10.0
"""Seconds by which counters and the check may be apart, before the check failed within which a queue moved, and for
which it must have been watched until then.
"""
_COUNTERS = ("publish", "deliver", "deliver_no_ack", "get", "ack")


@dataclass(frozen=True, slots=True)
class SilentQueues:
    """Quorum queues of one virtual host, at least one of them without a leader, and for how many seconds."""

    queues: tuple[Queue, ...]
    seconds: float


def silent_queues(view: View) -> dict[str, SilentQueues]:
    """Virtual host -> the quorum queues there that probably have no leader; empty while the check passes."""
    return per_view(view, _silent_queues)


def _silent_queues(view: View) -> dict[str, SilentQueues]:
    failed = failed_readings(view, CHECK)
    if not failed:
        return {}
    found = {}
    for vhost, seconds in _waiting(view).items():
        here = [each for each in view.queues if each.vhost == vhost and each.type == "quorum" and each.stats.publish]
        still = [each for each in here if _stands_still(view, each, failed[0].at)]
        if 0 < len(still) <= _MOST:
            queues = tuple(sorted(still, key=lambda each: each.name))
            found[vhost] = SilentQueues(queues, max(seconds, span(failed)))
    return found


def _waiting(view: View) -> dict[str, float]:
    """Virtual host -> seconds for which a publisher there has waited for the confirm of a quorum queue."""
    found: dict[str, float] = {}
    for channel in view.channels:
        if channel.vhost is not None and channel.messages_unconfirmed and _is_stalled(view, channel):
            idle = view.now.wall - channel.idle_since if channel.idle_since is not None else 0.0
            found[channel.vhost] = max(found.get(channel.vhost, 0.0), idle)
    return found


def _is_stalled(view: View, channel: Channel) -> bool:
    history = view.channel_history(channel.name)[-2:]
    return channel.pending_raft_commands != 0 and len(history) > 1 and not delta(history, "confirm")


def _stands_still(view: View, queue: Queue, failed: Instant) -> bool:
    """Return whether no counter of a queue moved since the check failed; before that, one did if it was seen."""
    history = view.history(queue)
    since = tuple(seen for seen in history if seen.at.since(failed) >= _LATE) or history[-2:]
    before = tuple(seen for seen in history if -_RECENT <= seen.at.since(failed) <= _LATE)
    if len(history) < 2 or delta(since, *_COUNTERS) or delta(history[-2:], *_COUNTERS):
        return False
    watched = history[0].at.since(failed) <= -_WATCHED
    return not watched or delta(before, *_COUNTERS) > 0
