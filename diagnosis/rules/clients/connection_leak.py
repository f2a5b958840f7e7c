"""connection-leak (X04): an application opens connections and does not close them.

Told by the application (its name, user, virtual host and host), within the half minute that connections are held, or by
how many it has while the cluster's number of connections keeps growing.
Source: https://www.rabbitmq.com/docs/connections#monitoring
"""

from collections.abc import Iterator
from functools import partial

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Connection, Overview
from diagnosis.closing import Identity, identity
from diagnosis.contract import RuleResult, View
from diagnosis.series import span, stretch
from diagnosis.window import Seen, Series
from diagnosis.words import client, lasting

NAME = "connection-leak"

_MANY_GROWING_SECONDS = 300.0


def evaluate(view: View) -> Iterator[RuleResult]:
    """Count the connections of each application, at each reading."""
    limits = view.thresholds.clients
    fewest = min(limits.connections_growth, limits.connections_many)
    counts = _counts(view.connections)
    large = {key for key, number in counts.items() if number > fewest}
    if not large:
        return
    readings = tuple(Seen(seen.at, _counts(seen.value)) for seen in view.window.readings("connections"))
    overviews: Series[Overview] = view.window.readings("overview")
    for key in sorted(large):
        growing = stretch(readings, partial(_no_fewer_of, key))
        grown = counts[key] - growing[0].value.get(key, 0)
        steadily = len({seen.value.get(key, 0) for seen in growing}) > _STEPS
        long = stretch(overviews, _no_fewer)
        many = counts[key] >= limits.connections_many and span(long) >= _MANY_GROWING_SECONDS and _grew(long)
        if many or (grown >= limits.connections_growth and span(growing) >= view.thresholds.early and steadily):
            first = next(each for each in view.connections if identity(each) == key)
            yield _finding(view, first, counts[key], grown, Seen(growing[0].at, span(growing)), many=many)


_STEPS = 2
"""A start of many at once is one step up, and then stands; a leak goes on."""


def _counts(connections: tuple[Connection, ...]) -> dict[Identity, int]:
    counts: dict[Identity, int] = {}
    for connection in connections:
        key = identity(connection)
        counts[key] = counts.get(key, 0) + 1
    return counts


def _no_fewer_of(key: Identity, older: Seen[dict[Identity, int]], newer: Seen[dict[Identity, int]]) -> bool:
    return newer.value.get(key, 0) >= older.value.get(key, 0)


def _no_fewer(older: Seen[Overview], newer: Seen[Overview]) -> bool:
    return (newer.value.connections or 0) >= (older.value.connections or 0)


def _grew(series: Series[Overview]) -> bool:
    return (series[-1].value.connections or 0) > (series[0].value.connections or 0)


def _finding(view: View, one: Connection, number: int, grown: int, seen: Seen[float], *, many: bool) -> FindingReport:
    limits = view.thresholds.clients
    name = client(one, one.name)
    whole = view.overview.connections if view.overview else None
    calm = "" if many else f"; a start looks the same; warning from {limits.connections_many} on, while they grow"
    return FindingReport(
        rule=NAME,
        severity=Severity.WARNING if many else Severity.INFO,
        subject=Subject(kind="connection", name=name, vhost=one.vhost),
        since=seen.at.iso(),
        summary=(
            f"{name!r} at {one.peer_host or 'an unknown host'} has {number} connections open, "
            f"{grown} more than {lasting(seen.value)} ago, and closes none{calm}"
        ),
        cause="The application opens a connection for each piece of work, or after each error, and does not close it.",
        evidence=(
            EvidenceReport(
                what="connections of this application",
                value=f"{number}, {grown} more in {lasting(seen.value)}",
                expected="a few a process, and not growing",
                source="/api/connections client_properties.connection_name, user, peer_host",
            ),
            EvidenceReport(
                what="connections of the cluster",
                value="not told" if whole is None else f"{whole}",
                source="/api/overview object_totals.connections",
            ),
        ),
        next_steps=(
            "see how many each has: rabbitmqctl list_connections user peer_host | sort | uniq -c | sort -n",
            f"restart {name!r}: its connections go with it",
            "mend it: one long-lived connection a process, closed in a `finally`",
            "later: a limit for its user: rabbitmqctl set_user_limits USER '{\"max-connections\": 50}'",
        ),
        runbook=runbook(NAME),
    )
