"""channel-leak (X03): a connection opens channels and does not close them.

At `channel_max` (2047 by default) the broker closes the whole connection: 530 "number of channels opened (N) has
reached the negotiated channel_max (N)".

Where the broker lists no clients, the total of the cluster decides (`_shared/unlisted_growth.py`). How many channels a
connection has is then unknown, so it is never critical.
Source: https://www.rabbitmq.com/docs/channels#channel-leaks
"""

from collections.abc import Hashable, Iterable, Iterator

from ackscope.findings import Certainty, Evidence, Facts, Finding, Severity, Subject, source
from ackscope.snapshot import Connection
from diagnosis.contract import RuleResult, View
from diagnosis.facts import client_name
from diagnosis.preconditions import unread
from diagnosis.relations import both
from diagnosis.rules.clients._shared.connections import involved_connections
from diagnosis.rules.clients._shared.unlisted_growth import TotalGrowth, total_growth, total_growth_finding
from diagnosis.rules.publishers._shared.native_publishers import without_links
from diagnosis.series import span, stretch
from diagnosis.window import Series, Timestamped

NAME = "channel-leak"

# Share of `channel_max` from which it is critical.
CRITICAL_SHARE = 0.9


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every connection with many channels, or with more of them at each reading; else all together."""
    limits = view.thresholds.clients
    lacking = tuple(unread(NAME, view, ("connections",)))
    if lacking:
        yield from lacking
        total = total_growth(view, "channels", limits.channels_growth) if view.lists_no_clients else None
        if total is not None:
            yield _total_finding(view, total)
        return
    yield from without_links(view, NAME)
    for connection in view.connections:
        channels = connection.channels or 0
        if channels <= min(limits.channels_growth, limits.channels_many):
            continue
        growing = stretch(view.connection_history(connection.name), _not_fewer)
        growth = channels - (growing[0].value.channels or 0)
        many = channels > limits.channels_many or _share(connection) > limits.channels_share
        if many or (growth >= limits.channels_growth and span(growing) >= view.thresholds.early):
            yield _finding(view, connection, growing, growth)


def _not_fewer(older: Timestamped[Connection], newer: Timestamped[Connection]) -> bool:
    return (newer.value.channels or 0) >= (older.value.channels or 0)


def _share(connection: Connection) -> float:
    """Return open channels as a share of the negotiated maximum; 0 without a limit."""
    return (connection.channels or 0) / connection.channel_max if connection.channel_max else 0.0


def _finding(view: View, connection: Connection, growing: Series[Connection], growth: int) -> Finding:
    limits = view.thresholds.clients
    channels, seconds = connection.channels or 0, span(growing)
    severity = Severity.INFO
    if channels > limits.channels_many or _share(connection) > limits.channels_share:
        severity = Severity.WARNING
    if _share(connection) >= CRITICAL_SHARE:
        severity = Severity.CRITICAL
    reached = bool(connection.channel_max) and channels >= (connection.channel_max or 0)
    until_limit = None
    if growth and not reached and connection.channel_max and seconds > 0:
        until_limit = (connection.channel_max - channels) * seconds / growth
    return Finding(
        rule=NAME,
        severity=severity,
        subject=Subject(kind="connection", name=connection.name, vhost=connection.vhost, node=connection.node),
        since=growing[0].at.iso(),
        facts={
            "client": client_name(connection),
            "connection": connection.name,
            "vhost": connection.vhost,
            "channels": channels,
            "channel_max": connection.channel_max or None,
            "limit_reached": reached,
            "growth": growth,
            "growth_seconds": seconds,
            "until_limit_seconds": until_limit,
            "warning_above_channels": limits.channels_many,
            "warning_after_seconds": None,
            "warning_always_seconds": None,
        },
        evidence=(
            Evidence(key="open", value=channels, source=source("/api/connections", "channels", "channel_max")),
            Evidence(key="growth", value=growth, source=source("/api/connections", "channels")),
        ),
        involved=involved_connections([connection]),
        certainty=Certainty.EARLY if severity is Severity.INFO else Certainty.LIKELY,
        seen_seconds=seconds,
    )


def _total_finding(view: View, found: TotalGrowth) -> Finding:
    many = view.thresholds.clients.channels_many
    facts: Facts = {
        "connection": None,
        "vhost": None,
        "channel_max": None,
        "limit_reached": False,
        "until_limit_seconds": None,
        "warning_above_channels": many,
    }
    return total_growth_finding(view, NAME, found, what="channels", many=many, key="total", facts=facts)


def _client(_view: View, finding: Finding) -> Iterable[Hashable]:
    client = finding.facts.get("client")
    return () if client is None else ((client, finding.facts.get("vhost")),)


SAME_CLIENT = both(_client)
"""Both are about the same application in the same virtual host: it leaks channels on several connections, or is cut off
at the limit of its channels and reconnects."""
