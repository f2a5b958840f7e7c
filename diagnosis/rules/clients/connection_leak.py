"""connection-leak (X04): an application opens connections and does not close them.

Connections are counted per application (its name, user, virtual host and host). An application is reported if its count
grows within half a minute of readings, or if it has many while the number of connections of the cluster keeps growing.
A slow leak shows in the times at which its open connections were opened: one after another until now, while the cluster
has as many more. One look has too few readings for that; there none of the connections may have been closed between
them, while others were opened.

Where the broker lists no clients, the total of the cluster decides (`_shared/unlisted_growth.py`).
Source: https://www.rabbitmq.com/docs/connections#monitoring
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from ackscope.clock import Instant
from ackscope.findings import Certainty, Evidence, Facts, Finding, Severity, Subject, source
from ackscope.snapshot import Connection, Overview
from diagnosis.churn_loops import Identity, churn_loops, identity
from diagnosis.contract import RuleResult, View
from diagnosis.facts import client_name
from diagnosis.preconditions import unread
from diagnosis.rules.clients._shared.connections import involved_connections
from diagnosis.rules.clients._shared.unlisted_growth import TotalGrowth, total_growth, total_growth_finding
from diagnosis.series import span, stretch
from diagnosis.window import Series, Timestamped

NAME = "connection-leak"

# Many connections, or a slow leak, are a warning only after the number has been growing for this long.
_GROWING_SECONDS = 300.0
_MOST_OTHERS = 0.2
"""Share of the connections opened by which the cluster may have grown less, because others were closed."""
_LONGEST_GAP = 4.0
"""How much longer than the average a time without a new connection may be; a start of many clients is over soon."""
_ONE_LOOK = 60.0
"""Seconds of readings below which names and times of connections decide, and not the number of all connections."""
_LATE = 6.0
"""Seconds by which the list of connections may be late: the broker refreshes its statistics every 5 s."""
_START_SECONDS = 30.0
"""Seconds in which many clients of an application may start one after another."""
# A start of many clients raises the number once; a leak keeps raising it.
_MAX_STEPS_OF_START = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The connections of one application.

    Attributes:
        own: all that it has now.
        growth: how many more than at `since`, from which on their number never fell.
        many: so many, or for so long, that it is a warning.
        closes: it closed others within the readings of connections, or opens and closes them in a loop.
    """

    own: list[Connection]
    growth: int
    since: Instant
    many: bool
    closes: bool


def evaluate(view: View) -> Iterator[RuleResult]:
    """Count the connections of each application, at each reading; only all of them where the broker lists none."""
    limits = view.thresholds.clients
    lacking = tuple(unread(NAME, view, ("connections",)))
    if lacking:
        yield from lacking
        total = total_growth(view, "connections", limits.connections_growth) if view.lists_no_clients else None
        if total is not None:
            yield _total_finding(view, total)
        return
    fewest = min(limits.connections_growth, limits.connections_many)
    owned: dict[Identity, list[Connection]] = defaultdict(list)
    for connection in view.connections:
        owned[identity(connection)].append(connection)
    large = {key: own for key, own in owned.items() if len(own) > fewest}
    if not large:
        return
    readings = tuple(Timestamped(seen.at, _counts(seen.value)) for seen in view.window.readings("connections"))
    overviews: Series[Overview] = view.window.readings("overview")
    looping = {identity(loop.connection) for loop in churn_loops(view) if loop.whole}
    cluster_growing = stretch(overviews, _not_fewer)
    cluster_grows = span(cluster_growing) >= _GROWING_SECONDS and _grew(cluster_growing)
    for key, own in sorted(large.items(), key=lambda each: each[0]):
        growing = stretch(readings, partial(_not_fewer_of, key))
        growth = len(own) - growing[0].value.get(key, 0)
        steadily = len({seen.value.get(key, 0) for seen in growing}) > _MAX_STEPS_OF_START
        many = len(own) >= limits.connections_many and cluster_grows
        closes = key in looping or _has_closed(view, key)
        found = Growth(own=own, growth=growth, since=growing[0].at, many=many, closes=closes)
        quick = growth >= limits.connections_growth and span(growing) >= view.thresholds.early and steadily
        few = span(overviews) < _ONE_LOOK
        slow = _opened_steadily(view, own, overviews) or (_none_closed(view, key, own) if few else None)
        if slow is not None:
            lasting = view.now.since(slow[1]) >= _GROWING_SECONDS
            yield _finding(view, replace(found, growth=slow[0], since=slow[1], many=many or lasting))
        elif many or quick:
            yield _finding(view, found)


def _opened_steadily(view: View, own: list[Connection], overviews: Series[Overview]) -> tuple[int, Instant] | None:
    """Return how many connections of an application were opened one after another until now, and since when."""
    opened = sorted(each.connected_at for each in own if each.connected_at is not None)
    within = [seen for seen in overviews if opened and seen.at.wall >= opened[0]]
    if len(within) < 2 or span(within) < view.thresholds.early:
        return None
    begin = within[0]
    times = [begin.at.wall, *(at for at in opened if at >= begin.at.wall), view.now.wall]
    number = len(times) - 2
    if number < view.thresholds.clients.connections_growth:
        return None
    grown = (within[-1].value.connections or 0) - (begin.value.connections or 0)
    longest = max(later - earlier for earlier, later in pairwise(times))
    even = longest <= _LONGEST_GAP * (times[-1] - times[0]) / number
    return (number, begin.at) if even and grown >= (1 - _MOST_OTHERS) * number else None


def _none_closed(view: View, key: Identity, own: list[Connection]) -> tuple[int, Instant] | None:
    """Return how many connections were opened one after another until now, and since when, if the readings are few.

    Connections that are closed after a while are missing in a later reading.
    """
    readings = [
        Timestamped(seen.at, {each.name for each in seen.value if identity(each) == key})
        for seen in view.window.readings("connections")
    ]
    opened = sorted(each.connected_at for each in own if each.connected_at is not None)
    if not len(readings) >= 2 or span(readings) < view.thresholds.interval / 2 or len(opened) < len(own):
        return None
    if not all(older.value <= newer.value for older, newer in pairwise(readings)):
        return None
    # The newest ones are not listed yet.
    times = [*opened, max(opened[-1], readings[-1].at.wall - _LATE)]
    seconds = times[-1] - times[0]
    longest = max(later - earlier for earlier, later in pairwise(times))
    grew = len(readings[-1].value) - len(readings[0].value) > _MAX_STEPS_OF_START
    if not grew or seconds < _START_SECONDS or longest > _LONGEST_GAP * seconds / len(opened):
        return None
    return len(opened) - 1, Instant(wall=opened[0], mono=view.now.mono - (view.now.wall - opened[0]))


def _has_closed(view: View, key: Identity) -> bool:
    """Return whether a connection of an application is missing in a later reading."""
    readings = view.window.readings("connections")
    names = [{each.name for each in seen.value if identity(each) == key} for seen in readings]
    return any(not older <= newer for older, newer in pairwise(names))


def _counts(connections: tuple[Connection, ...]) -> dict[Identity, int]:
    counts: dict[Identity, int] = {}
    for connection in connections:
        key = identity(connection)
        counts[key] = counts.get(key, 0) + 1
    return counts


def _not_fewer_of(
    key: Identity, older: Timestamped[dict[Identity, int]], newer: Timestamped[dict[Identity, int]]
) -> bool:
    return newer.value.get(key, 0) >= older.value.get(key, 0)


def _not_fewer(older: Timestamped[Overview], newer: Timestamped[Overview]) -> bool:
    return (newer.value.connections or 0) >= (older.value.connections or 0)


def _grew(series: Series[Overview]) -> bool:
    return (series[-1].value.connections or 0) > (series[0].value.connections or 0)


def _finding(view: View, found: Growth) -> Finding:
    first, seconds = found.own[0], view.now.since(found.since)
    name = client_name(first) or first.name
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if found.many else Severity.INFO,
        subject=Subject(kind="connection", name=name, vhost=first.vhost),
        since=found.since.iso(),
        facts={
            "client": name,
            "host": first.peer_host,
            "user": first.user,
            "connections": len(found.own),
            "growth": found.growth,
            "closes_some": found.closes,
            "growth_seconds": seconds,
            "warning_from_connections": view.thresholds.clients.connections_many,
            "warning_after_seconds": _GROWING_SECONDS,
            "warning_always_seconds": None,
        },
        evidence=(
            Evidence(
                key="of_client",
                value=len(found.own),
                source=source("/api/connections", "client_properties.connection_name", "user", "peer_host"),
            ),
            Evidence(
                key="of_cluster",
                value=view.overview.connections if view.overview else None,
                source=source("/api/overview", "object_totals.connections"),
            ),
        ),
        involved=involved_connections(found.own),
        certainty=Certainty.LIKELY if found.many else Certainty.EARLY,
        seen_seconds=seconds,
    )


def _total_finding(view: View, found: TotalGrowth) -> Finding:
    many = view.thresholds.clients.connections_many
    facts: Facts = {
        "host": None,
        "user": None,
        "closes_some": bool(found.closed),
        "warning_from_connections": many,
    }
    return total_growth_finding(view, NAME, found, what="connections", many=many, key="of_cluster", facts=facts)
