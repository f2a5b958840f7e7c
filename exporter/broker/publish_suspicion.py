"""Channels that give a reason to ask to which exchange they publish, which costs a reading of every node's endpoint."""

from collections.abc import Iterable, Mapping

from ackscope.counters import MessageStats
from ackscope.snapshot import Channel, Connection
from diagnosis.series import count
from diagnosis.view import is_own

_FEWEST = 5
"""Messages below which a channel that consumes and publishes shows nothing."""
_ALIKE = 0.3
"""Share by which the published messages of a channel may differ from the acknowledged ones."""

_NO_COUNTERS = MessageStats()


def suspicious_channels(
    channels: Iterable[Channel], connections: Iterable[Connection], before: Mapping[str, MessageStats]
) -> bool:
    """Return whether a channel loses messages without a route, or publishes about as many as it acknowledges.

    The second one may publish to the queue that it consumes from. Our own probes lose messages by design.

    Args:
        channels: latest reading.
        connections: latest reading.
        before: channel name -> its counters in an earlier reading; others count from the time they were opened.
    """
    own = {each.name for each in connections if is_own(each)}
    return any(
        _is_suspicious(each, before.get(each.name, _NO_COUNTERS))
        for each in channels
        if each.connection_name not in own
    )


def _is_suspicious(channel: Channel, before: MessageStats) -> bool:
    def gained(*counters: str) -> int:
        return count(channel.stats, *counters) - count(before, *counters)

    if gained("drop_unroutable", "return_unroutable") > 0:
        return True
    published, acknowledged = gained("publish"), gained("ack")
    alike = abs(published - acknowledged) <= _ALIKE * max(published, acknowledged)
    return bool(channel.consumer_count) and published >= _FEWEST and alike
