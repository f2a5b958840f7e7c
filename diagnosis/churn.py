"""Connections, channels and queues that a cluster opens and closes, by its churn counters (`churn_rates`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from ackscope.clock import Instant
from ackscope.snapshot import Overview, Snapshot
from diagnosis.contract import View
from diagnosis.probe_traffic import probe_traffic
from diagnosis.series import grows_at_once, last, nearest, span, steps
from diagnosis.view import is_own
from diagnosis.window import Series, Timestamped

_OWN, _NONE = (2, 1), (0, 0)
"""Channels and connections that our own probes may close between two readings of the overview."""
_LATEST_SECONDS = 30.0
"""Seconds over which readings of the overview are compared, at least, where the broker lists no connections."""
_LATEST_READINGS = 3
"""Least number of these readings: two do not show whether all came or went at once."""
_OWN_MARGIN = 1.25
"""Factor for what our own probes open and close, because their pace is a mean."""
_CHANNELS_EACH = 10
"""Channels that a connection which comes and goes may open; no client library opens as many by itself."""


@dataclass(frozen=True, slots=True)
class ChurnRate:
    """Opens and closes per second of the whole cluster, for connections or for channels."""

    rate: float
    lasts: float
    since: Instant


def churn_rate(view: View, what: str) -> ChurnRate | None:
    """Return the churn rate of `connection` or `channel`; None if the counters are unknown or do not move."""
    overviews: Series[Overview] = view.window.readings("overview")
    ends = churn_window(view, overviews)
    if ends is None:
        return None
    first, latest = ends
    both = (churn_increase(first.value, latest.value, f"{what}_{name}") for name in ("created", "closed"))
    rate = min(both) / latest.at.since(first.at)
    if what == "connection" and view.lists_no_clients:
        # What was opened and is closed at once, as at a restart, was no loop; no list shows it.
        rate = 0.0 if _at_once(overviews, ends, what) else rate - _OWN_MARGIN * probe_traffic(view).connects
    if rate <= 0:
        return None
    spell = loop_streak(view, overviews, what, rate)
    return ChurnRate(rate, spell[-1].at.since(spell[0].at), spell[0].at)


def channel_churn_beside_connections(view: View) -> ChurnRate | None:
    """Return the channels that open and close beside those of connections that come and go; None if there may be none.

    The counters do not tell to which connections channels belong. So there are some only if each connection that comes
    and goes would have to open more than any does. Those of our own probes are left out.
    """
    overviews: Series[Overview] = view.window.readings("overview")
    ends = churn_window(view, overviews)
    if ends is None:
        return None
    first, latest = ends
    seconds, own = latest.at.since(first.at), probe_traffic(view)
    opened, closed, ended = (
        churn_increase(first.value, latest.value, name) / seconds
        for name in ("channel_created", "channel_closed", "connection_closed")
    )
    channels = min(opened, closed) - _OWN_MARGIN * (own.closes + own.connects)
    connections = max(0.0, ended - own.connects)
    if channels <= _CHANNELS_EACH * connections or _at_once(overviews, ends, "channel"):
        return None
    spell = churn_streak(view, overviews, "channel_closed", channels)
    if span(spell):
        # The pace of a loop that has just begun is higher than over all of these readings.
        faster = churn_increase(spell[0].value, spell[-1].value, "channel_closed") / span(spell)
        spell = churn_streak(view, overviews, "channel_closed", max(channels, faster))
    return ChurnRate(channels - connections, spell[-1].at.since(spell[0].at), spell[0].at)


def churn_window(view: View, overviews: Series[Overview]) -> tuple[Timestamped[Overview], Timestamped[Overview]] | None:
    """Return the first and the last overview of the period for which the window holds connections.

    Of a broker that lists no clients, the latest ones. Returns None if there are fewer than two readings, or if they
    span less than one interval.
    """
    readings = view.window.readings("connections")
    if len(overviews) < 2 or (len(readings) < 2 and not view.lists_no_clients):
        return None
    if view.lists_no_clients:
        held = list(overviews[-max(_LATEST_READINGS, len(last(overviews, _LATEST_SECONDS))) :])
    else:
        held = [seen for seen in overviews if seen.at.mono >= readings[0].at.mono - 1.0]
    # A churn that began just now must not be averaged over the quiet time before it.
    own = view.outcomes if view.lists_no_clients else [each for each in view.every_connection if is_own(each)]
    slack = _OWN if own else _NONE
    while len(held) > 2 and _quiet(held[0].value, held[1].value, *slack):
        del held[0]
    if len(held) < 2 or held[-1].at.since(held[0].at) < view.thresholds.interval:
        return None
    return held[0], held[-1]


def hidden_queues(view: View, snapshots: Sequence[Snapshot]) -> int:
    """Return the queues that are hidden in each of these polls; 0 if unknown, or from one poll only.

    Queues that were created since the list was read are not hidden; the overview is read more often. Those that come
    or go between its count of queues and its counters, or the list, seem to be hidden: as many as do so in a second,
    and one more, do not count.
    """
    known = [number for each in snapshots if (number := _hidden_in(view, each)) is not None]
    if len(known) < len(snapshots) or len(known) < 2:
        return 0
    overviews = [each.overview.value for each in snapshots if each.overview.value is not None]
    changes = (churn_increase(overviews[0], overviews[-1], f"queue_{name}") for name in ("created", "deleted"))
    most = max(changes) if overviews else 0
    brief = ceil(most / max(snapshots[-1].taken.since(snapshots[0].taken), 1.0)) + 1 if most else 0
    return min(known) if min(known) > brief else 0


def _hidden_in(view: View, snapshot: Snapshot) -> int | None:
    """Return the queues that one poll does not list, without those created since the list; None if unknown."""
    number, overview, listed = snapshot.hidden_queues, snapshot.overview, snapshot.queues.at
    if not number or overview.value is None or overview.at is None or listed is None or listed.mono >= overview.at.mono:
        return number
    overviews: Series[Overview] = view.window.readings("overview")
    before = next((seen.value for seen in reversed(overviews) if seen.at.mono <= listed.mono), None)
    return None if before is None else max(0, number - churn_increase(before, overview.value, "queue_created"))


def _quiet(older: Overview, newer: Overview, channels: int, connections: int) -> bool:
    ended = churn_increase(older, newer, "connection_closed")
    return ended <= connections and churn_increase(older, newer, "channel_closed") - ended <= channels


def churn_increase(older: Overview, newer: Overview, name: str) -> int:
    """Return the increase of a churn counter; 0 if it is absent or was reset."""
    before, after = older.churn.get(name), newer.churn.get(name)
    return max(0, after - before) if before is not None and after is not None else 0


def _at_once(overviews: Series[Overview], ends: tuple[Timestamped[Overview], Timestamped[Overview]], what: str) -> bool:
    """Return whether most connections or channels were opened, or closed, between the same two readings.

    One look has no others.
    """
    if len(overviews) < _LATEST_READINGS:
        return False
    begin = ends[0].at.mono
    held = [seen.value.churn for seen in overviews if seen.at.mono >= begin]
    return any(grows_at_once([each.get(f"{what}_{word}", 0) for each in held]) for word in ("created", "closed"))


def churn_streak(view: View, overviews: Series[Overview], name: str, rate: float) -> Series[Overview]:
    """Return the latest stretch in which a churn counter rose at half of `rate` or faster in each pair of readings.

    The readings of a pair are at least one interval apart, so that the broker has refreshed the counter between them,
    and at least two cycles of a slow loop apart.
    """
    pairs = steps(overviews, max(view.thresholds.interval, 2 / rate))
    begin = len(overviews) - 1
    for older, newer in reversed(pairs):
        begin = next(place for place, seen in enumerate(overviews) if seen.at == older.at)
        if churn_increase(older.value, newer.value, name) < rate * newer.at.since(older.at) / 2:
            break
    while begin < len(overviews) - 1 and churn_increase(overviews[begin].value, overviews[begin + 1].value, name) == 0:
        begin += 1
    return overviews[begin:]


def loop_streak(view: View, overviews: Series[Overview], what: str, rate: float) -> Series[Overview]:
    """Return the latest stretch in which `connection` or `channel` came and went at half of `rate` or faster.

    What is opened steadily may be closed many at a time: a client that drops its connections without closing them ends
    those that its language happens to collect.
    """
    closed, created = (churn_streak(view, overviews, f"{what}_{name}", rate) for name in ("closed", "created"))
    if len(created) > 2 and churn_increase(created[0].value, created[1].value, f"{what}_created") < (
        rate * span(created[:2]) / 2
    ):
        # It began between these two readings.
        created = created[1:]
    ended = churn_increase(created[0].value, created[-1].value, f"{what}_closed")
    return created if len(created) > len(closed) and ended >= rate * span(created) / 2 else closed


def cycles_within(overviews: Series[Overview], history: Series[Any], own_rate: float, *, ends: bool) -> float:
    """Return the channels closed in the time of some readings, without those of our own probes.

    Args:
        overviews: all readings of the overview.
        history: readings of anything; other churn may have begun long before the first.
        own_rate: channels per second that our own probes close.
        ends: True if each connection that ended closed a channel, which does not count.
    """
    first, latest = nearest(overviews, history[0].at), nearest(overviews, history[-1].at)
    closed, ended = (churn_increase(first.value, latest.value, f"{what}_closed") for what in ("channel", "connection"))
    return max(0.0, closed - ended * ends - own_rate * span((first, latest)))


def link_restarts(view: View) -> bool:
    """Return whether a shovel or federation link was seen that does not run: it tries again every few seconds."""
    readings = view.window.readings("links")
    return any(link.state not in {None, "running", "flow"} for seen in readings for link in seen.value)
