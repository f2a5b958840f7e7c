"""Channels that begin to lose messages, or to publish what they consume, so that their exchanges are asked for."""

from typing import TYPE_CHECKING

from ackscope.snapshot import Channel, Connection, Part
from exporter.broker.families import PUBLISHES
from exporter.broker.publish_suspicion import suspicious_channels

if TYPE_CHECKING:
    from ackscope.clock import Instant
    from ackscope.counters import MessageStats

_LASTS = 30.0
"""Seconds after the last suspicious reading for which the exchanges are still asked for."""


class PublishHints:
    """Follows the channels from one reading to the next. Not thread-safe."""

    def __init__(self) -> None:
        self._counters: dict[str, MessageStats] | None = None
        self._channels_at: Instant | None = None
        self._suspected: Instant | None = None

    def update(self, channels: Part[tuple[Channel, ...]], connections: Part[tuple[Connection, ...]]) -> frozenset[str]:
        """Return the families to read while the suspicion lasts, given the latest readings."""
        if channels.value is not None and channels.at is not None and channels.at != self._channels_at:
            self._channels_at = channels.at
            # What channels lost before the first reading may be long over.
            if self._counters is not None and suspicious_channels(
                channels.value, connections.value or (), self._counters
            ):
                self._suspected = channels.at
            self._counters = {each.name: each.stats for each in channels.value}
        if self._suspected is None or self._channels_at is None:
            return frozenset()
        lasts = self._channels_at.since(self._suspected) <= _LASTS
        return frozenset({PUBLISHES}) if lasts else frozenset()
