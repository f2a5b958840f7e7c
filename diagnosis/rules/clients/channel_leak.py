"""channel-leak (X03): a connection opens channels and does not close them.

At `channel_max` (2047 unless set) the broker ends the whole connection: 530 "number of channels opened (N) has reached
the negotiated channel_max (N)".
Source: https://www.rabbitmq.com/docs/channels#channel-leaks
"""

from collections.abc import Iterator

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Connection
from diagnosis.contract import RuleResult, View
from diagnosis.series import span, stretch
from diagnosis.window import Seen, Series
from diagnosis.words import client, close_connection, lasting

NAME = "channel-leak"

FULL = 0.9
"""Of `channel_max`: critical."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every connection with channels to spare, or with more of them at each reading."""
    limits = view.thresholds.clients
    for connection in view.connections:
        channels = connection.channels or 0
        if channels <= min(limits.channels_growth, limits.channels_many):
            continue
        growing = stretch(view.connection_history(connection.name), _no_fewer)
        grown = channels - (growing[0].value.channels or 0)
        many = channels > limits.channels_many or _share(connection) > limits.channels_share
        if many or (grown >= limits.channels_growth and span(growing) >= view.thresholds.early):
            yield _finding(view, connection, growing, grown)


def _no_fewer(older: Seen[Connection], newer: Seen[Connection]) -> bool:
    return (newer.value.channels or 0) >= (older.value.channels or 0)


def _share(connection: Connection) -> float:
    """Of the channels that were negotiated; 0 where there is no limit."""
    return (connection.channels or 0) / connection.channel_max if connection.channel_max else 0.0


def _finding(view: View, connection: Connection, growing: Series[Connection], grown: int) -> FindingReport:
    limits = view.thresholds.clients
    channels, seconds = connection.channels or 0, span(growing)
    severity = Severity.INFO
    if channels > limits.channels_many or _share(connection) > limits.channels_share:
        severity = Severity.WARNING
    if _share(connection) >= FULL:
        severity = Severity.CRITICAL
    more = f", {grown} more in {lasting(seconds)} and none closed" if grown else ""
    early = severity is Severity.INFO
    calm = f"; a start looks the same; warning from {limits.channels_many} on" if early else ""
    left = (connection.channel_max or 0) - channels
    if grown and connection.channel_max and seconds > 0:
        more += f"; at this pace the limit is reached in {lasting(left * seconds / grown)}"
    name = client(connection, connection.name)
    return FindingReport(
        rule=NAME,
        severity=severity,
        subject=Subject(kind="connection", name=connection.name, vhost=connection.vhost, node=connection.node),
        since=growing[0].at.iso(),
        summary=f"{name!r} has {channels} channels open on one connection{more}{calm}",
        cause="The client opens channels and does not close them, usually one for each operation or failed attempt.",
        evidence=(
            EvidenceReport(
                what="channels open",
                value=f"{channels}" + (f" of {connection.channel_max}" if connection.channel_max else ""),
                expected=f"at most {limits.channels_many}, and not growing",
                source="/api/connections channels, channel_max",
            ),
            EvidenceReport(
                what="gained", value=f"{grown} in {lasting(seconds)}", expected="0", source="/api/connections channels"
            ),
        ),
        next_steps=(
            "see what they are used for: rabbitmqctl list_channels connection number consumer_count",
            f"restart the client, or close its connection: {close_connection(connection.name, 'channel leak')[0]}",
            "mend it: close each channel in a `finally`, or keep one a thread",
            "later: channel_max = 100 in rabbitmq.conf ends such a client early and alone",
        ),
        runbook=runbook(NAME),
    )
