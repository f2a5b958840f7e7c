"""Counts refused logins and connections that are refused after their login, from the broker's counters.

Seen on 3.10.8 and 4.3.6, five of each: a wrong password raises `auth_attempts_failed`. A missing virtual host, no
permission on it, a connection limit that is reached, or (since 4.1) a `frame_max` below 8192 raise
`auth_attempts_succeeded`, and `connection_closed` but not `connection_created`. A connection that ends before its login
(a bare TCP check, TLS on a port without TLS) raises `connection_closed` alone.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from ackscope.clock import Instant
from ackscope.snapshot import Overview
from ackscope.topology import AuthAttempts
from diagnosis.contract import View
from diagnosis.probe_traffic import probe_traffic
from diagnosis.series import last, nearest

if TYPE_CHECKING:
    from diagnosis.window import Series, Timestamped

_SETTLED = 6.0
"""Seconds after which the counters of connections have all that happened before: they are refreshed every 5 s."""
_STEADY_READINGS, _STEADY_LEAST = 2, 4
"""Least intervals and refused logins by which their rate is known to be steady."""
_STEADY_COUNT, _STEADY_SHARE = 1.0, 0.25
"""Logins by which an interval may differ from a steady rate, and the share of what is expected by it."""
_PAUSE = 60.0
"""Seconds without a refused login after which those that follow have another reason."""
_CHURN = ("connection_created", "connection_closed")

AMQP = ("amqp091", "amqp10", "amqp")
_NOT_CLIENTS = "http"
"""The protocol of the management API, whose logins open no connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedLogins:
    """Logins over one protocol at one node within a period, some of them refused.

    Attributes:
        total, failed: logins and refused logins within `seconds`.
        recent: logins refused between the last two readings.
        since: the reading before the first refused login.
        every: seconds from one refused login to the next, if they are steady since then; else None.
        began: the readings between which they began, also before the period; None if that is unknown.
    """

    node: str
    protocol: str
    total: int
    failed: int
    recent: int
    seconds: float
    since: Instant
    every: float | None
    began: tuple[Instant, Instant] | None


def refused_logins(view: View, seconds: float) -> tuple[RefusedLogins, ...]:
    """Return the protocols and nodes where logins were refused within the last `seconds`."""
    readings = last(view.window.readings("auth"), seconds)
    if len(readings) < 2:
        return ()
    first = readings[0].at
    longer = {seen.at: seen for seen in (*view.trend("auth"), *view.window.readings("auth"))}
    known = [
        (at, {(each.node, each.protocol): each for each in seen.value})
        for at, seen in sorted(longer.items(), key=lambda pair: pair[0].mono)
    ]
    found = []
    for key, newest in sorted(known[-1][1].items()):
        series = [(at, counts[key]) for at, counts in known if key in counts]
        gains = [_LoginGain(older[0], newer[0], *_gain(older[1], newer[1])) for older, newer in pairwise(series)]
        within = [each for each in gains if each.older.mono >= first.mono]
        refused = [each for each in within if each.failed]
        if refused:
            every = _steady_interval([each for each in within if each.older.mono >= refused[0].older.mono])
            found.append(
                RefusedLogins(
                    node=newest.node,
                    protocol=newest.protocol,
                    total=sum(each.total for each in within),
                    failed=sum(each.failed for each in within),
                    recent=within[-1].failed,
                    seconds=within[-1].newer.since(refused[0].older),
                    since=refused[0].older,
                    every=every,
                    began=_beginning(gains, every),
                )
            )
    return tuple(found)


def accepted_logins(view: View, since: Instant) -> Mapping[str, float] | None:
    """Return the logins per second that were accepted since a moment, by protocol, without those of our own probes.

    A protocol is listed from its first login on, so it had none before where its node is listed.

    Returns:
        None if logins were not read twice since then, or a node was restarted meanwhile.
    """
    readings = [seen for seen in view.window.readings("auth") if seen.at.mono >= since.mono - 1.0]
    if len(readings) < 2:
        return None
    first, latest = readings[0], readings[-1]
    before = {(each.node, each.protocol): each.succeeded or 0 for each in first.value}
    nodes = {each.node for each in first.value}
    gains: Counter[str] = Counter()
    for each in latest.value:
        gain = (each.succeeded or 0) - before.get((each.node, each.protocol), 0)
        if gain < 0 or each.node not in nodes:
            return None
        gains[each.protocol] += gain
    seconds = latest.at.since(first.at)
    own = {"amqp091": probe_traffic(view).connects}
    found = {name: gain / seconds - own.get(name, 0.0) for name, gain in gains.items() if name != _NOT_CLIENTS}
    return {name: rate for name, rate in found.items() if rate > 0}


@dataclass(frozen=True, slots=True)
class _LoginGain:
    """Logins, and refused ones among them, between two readings."""

    older: Instant
    newer: Instant
    total: int
    failed: int

    @property
    def seconds(self) -> float:
        return self.newer.since(self.older)


def _steady_interval(gains: list[_LoginGain]) -> float | None:
    """Return the seconds from one refused login to the next if each reading counts about as many a second; else None.

    They began within the first interval, so it is left out.
    """
    gains = gains[1:]
    total, seconds = sum(each.failed for each in gains), sum(each.seconds for each in gains)
    if len(gains) < _STEADY_READINGS or total < _STEADY_LEAST:
        return None
    for each in gains:
        expected = total / seconds * each.seconds
        if abs(each.failed - expected) > max(_STEADY_COUNT, _STEADY_SHARE * expected):
            return None
    return seconds / total


def _beginning(gains: list[_LoginGain], every: float | None) -> tuple[Instant, Instant] | None:
    """Return the readings between which refusals began that are not over; None if they may be older than all."""
    began = next(place for place in range(len(gains) - 1, -1, -1) if gains[place].failed)
    for place in range(began - 1, -1, -1):
        if gains[place].failed:
            began = place
        elif gains[began].older.since(gains[place].older) >= _PAUSE:
            break
    first = gains[began]
    # Fewer than a steady rate refuses in this time began within it.
    is_new = began > 0 or (every is not None and first.failed + _STEADY_COUNT < first.seconds / every)
    return (first.older, first.newer) if is_new else None


def _gain(older: AuthAttempts, newer: AuthAttempts) -> tuple[int, int]:
    """Return logins and refused logins between two readings; 0 if the node has restarted."""
    if None in (older.total, older.failed, newer.total, newer.failed):
        return 0, 0
    total = (newer.total or 0) - (older.total or 0)
    failed = (newer.failed or 0) - (older.failed or 0)
    return (total, failed) if total >= 0 and failed >= 0 else (0, 0)


@dataclass(frozen=True, slots=True)
class RefusedConnections:
    """AMQP connections that logged in and were then refused, within a period."""

    count: int
    seconds: float


def refused_connections(view: View) -> RefusedConnections | None:
    """Return the connections refused after their login between the last two readings of logins; None if unknown.

    The counters of logins and of connections are read at different times, so a few such connections may be an error.
    """
    auth: Series[tuple[AuthAttempts, ...]] = view.window.readings("auth")
    overviews: Series[Overview] = view.window.readings("overview")
    if len(auth) < 2 or len(overviews) < 2:
        return None
    first, latest = (
        _LoginReading(seen.at, _succeeded(seen.value), beside, beside)
        for seen in auth[-2:]
        for beside in (nearest(overviews, seen.at).value,)
    )
    return RefusedConnections(max(0, _refused(first, latest)), latest.at.since(first.at))


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedOpenings:
    """AMQP connections that logged in and were refused when they opened their virtual host, within a period.

    Attributes:
        count: minimum of such connections.
        logins: all AMQP logins within `seconds`.
        continues: whether the last two readings of logins show more of them.
        since: the last reading of logins that did not show any of them.
    """

    count: int
    logins: int
    continues: bool
    seconds: float
    since: Instant


def refused_openings(view: View, seconds: float) -> RefusedOpenings | None:
    """Return the connections that were refused after their login within the last `seconds`; None without any.

    A login is counted at once, an opened connection up to 5 s later. Therefore the openings are counted until
    `_SETTLED` seconds after the logins, so that many connections at once do not look refused.
    """
    overviews: Series[Overview] = view.window.readings("overview")
    counted = [
        _LoginReading(seen.at, _succeeded(seen.value), before.value, after.value)
        for seen in last(view.window.readings("auth"), seconds)
        if (before := _until(overviews, seen.at)) and (after := _from(overviews, seen.at))
    ]
    counted = counted[_last_restart(counted) :]
    if len(counted) < 2:
        return None
    counts = [_refused(counted[0], each) for each in counted]
    latest = counted[-1]
    if counts[-1] <= 0:
        return None
    first = counted[max(place for place, number in enumerate(counts) if place == 0 or number <= 0)]
    return RefusedOpenings(
        count=counts[-1],
        logins=latest.succeeded - first.succeeded,
        continues=counts[-1] > counts[-2],
        seconds=latest.at.since(first.at),
        since=first.at,
    )


@dataclass(frozen=True, slots=True)
class _LoginReading:
    """One reading of successful logins, with the overview from which on and the one until which openings count."""

    at: Instant
    succeeded: int
    before: Overview
    after: Overview


def _last_restart(counted: list[_LoginReading]) -> int:
    """Return the place of the first reading since a node was restarted or its counters were missing."""
    start = 0
    for place, (older, newer) in enumerate(pairwise(counted), start=1):
        fell = any(_churn(newer.before, name) < _churn(older.before, name) for name in _CHURN)
        if fell or newer.succeeded < older.succeeded:
            start = place
    return start


def _refused(older: _LoginReading, newer: _LoginReading) -> int:
    """Return how many connections were refused after their login between two readings of logins."""
    first, latest = older.before, newer.after
    created = _churn(latest, "connection_created") - _churn(first, "connection_created")
    closed = _churn(latest, "connection_closed") - _churn(first, "connection_closed")
    opened = (latest.connections or 0) - (first.connections or 0)
    # Each accepted connection is open now or was closed; the rest of the closed ones were never accepted.
    return min(newer.succeeded - older.succeeded - created, closed - created + opened)


def _until(overviews: "Series[Overview]", at: Instant) -> "Timestamped[Overview] | None":
    return next((seen for seen in reversed(overviews) if seen.at.mono <= at.mono), None)


def _from(overviews: "Series[Overview]", at: Instant) -> "Timestamped[Overview] | None":
    return next((seen for seen in overviews if seen.at.mono >= at.mono + _SETTLED), None)


def _succeeded(attempts: tuple[AuthAttempts, ...]) -> int:
    return sum(each.succeeded or 0 for each in attempts if each.protocol in AMQP)


def _churn(overview: Overview, name: str) -> int:
    return overview.churn.get(name, 0)
