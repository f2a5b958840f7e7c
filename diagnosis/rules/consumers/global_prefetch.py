"""global-prefetch (B18): a prefetch that all consumers of a channel share (basic.qos with global=true).

Read from `global_prefetch_count`, which brokers do not report from 4.0 on. Deprecated: 4.3 refuses it by default, and
quorum queues never accepted it: they close the connection (540).
Source: https://www.rabbitmq.com/docs/consumer-prefetch#sharing-the-limit; seen on 3.10, 4.0 and 4.3.
"""

from collections import defaultdict
from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Fact, Finding, Inconclusive, Involved, Severity, Subject, source
from ackscope.snapshot import Channel
from diagnosis.contract import RuleResult, View
from diagnosis.facts import client_name

NAME = "global-prefetch"


def evaluate(view: View) -> Iterator[RuleResult]:
    """List the channels with a shared limit."""
    if view.version is not None and view.version >= (4, 0):
        yield Inconclusive(rule=NAME, reason="not_reported", permanent=True)
        return
    found: dict[str, list[Channel]] = defaultdict(list)
    for channel in view.channels:
        if channel.global_prefetch_count:
            found[channel.vhost or ""].append(channel)
    yield from (_finding(view, vhost, channels) for vhost, channels in sorted(found.items()))


def _finding(view: View, vhost: str, channels: list[Channel]) -> Finding:
    connections = {each.connection_name: view.connection(each.connection_name) for each in channels}
    names = {client_name(connection, name) for name, connection in connections.items()}
    listed: list[Fact] = [
        {"name": each.name, "prefetch": each.global_prefetch_count}
        for each in sorted(channels, key=lambda each: each.name)
    ]
    return Finding(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="vhost", name=vhost),
        facts={"vhost": vhost, "channels": listed, "clients": sorted(name for name in names if name)},
        evidence=(
            Evidence(key="channels", value=len(channels), source=source("/api/channels", "global_prefetch_count")),
        ),
        involved=Involved(
            channels=tuple(each.name for each in channels),
            connections=tuple(name for name in connections if name),
            clients=tuple(
                dict.fromkeys(each.client_name for each in connections.values() if each and each.client_name)
            ),
        ),
        certainty=Certainty.CERTAIN,
    )
