"""Compares the figures of two sources of one cluster, and says which differ by more than the delay between them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ackscope.clock import Instant
from ackscope.second_source import Disagreement
from ackscope.snapshot import Part, Queue
from exporter.broker.endpoints.queues import QueueKey
from exporter.broker.prometheus.figures import QUEUE_GAUGES

LASTING_SECONDS, FEWEST_READINGS = 30.0, 4
"""Figures differ if no value of one source overlaps those of the other, for so long and over so many readings.

Both sources refresh every 5 s, and are read at different times. A queue that grows or empties passes through the same
values in both.
"""

MOST_SHOWN = 20

_COMPARED = {
    attribute: (api, f"rabbitmq_detailed_{metric}")
    for metric, (attribute, api) in QUEUE_GAUGES.items()
    if attribute in {"messages_ready", "messages_unacked", "consumers"}
}

_Figure = tuple[QueueKey, str]


@dataclass(slots=True)
class _Apart:
    """Values of one figure since the two sources began to differ."""

    since: float
    readings: int
    management: tuple[int, int]
    prometheus: tuple[int, int]

    @property
    def overlap(self) -> bool:
        return self.management[0] <= self.prometheus[1] and self.prometheus[0] <= self.management[1]


class SourceComparison:
    """Follows the figures of one cluster. Not thread-safe."""

    def __init__(self) -> None:
        self._apart: dict[_Figure, _Apart] = {}
        self._at: tuple[float, float] | None = None
        self._found: tuple[Disagreement, ...] = ()

    def compare(
        self, listed: Part[tuple[Queue, ...]], figures: Mapping[QueueKey, Mapping[str, Any]], at: Instant | None
    ) -> tuple[Disagreement, ...]:
        """Return the lasting differences, largest first; the same as before unless both sources were read again.

        Args:
            listed: the queues of the management API.
            figures: attribute of a queue -> value of the other source, by queue.
            at: when these were read.
        """
        if listed.value is None or listed.at is None or at is None:
            return self._found
        if self._at is not None and (listed.at.mono <= self._at[0] or at.mono <= self._at[1]):
            return self._found
        self._at = (listed.at.mono, at.mono)
        apart, lasting = dict[_Figure, _Apart](), list[Disagreement]()
        for queue, attribute, management, prometheus in _differing(listed.value, figures):
            figure = (queue.key, attribute)
            state = _extended(self._apart.get(figure), management, prometheus, at.mono)
            apart[figure] = state
            if at.mono - state.since >= LASTING_SECONDS and state.readings >= FEWEST_READINGS:
                api, metric = _COMPARED[attribute]
                lasting.append(
                    Disagreement(
                        vhost=queue.vhost,
                        queue=queue.name,
                        figure=api,
                        metric=metric,
                        management=management,
                        prometheus=prometheus,
                    )
                )
        self._apart = apart
        lasting.sort(key=lambda it: (-abs(it.management - it.prometheus), it.vhost, it.queue, it.figure))
        self._found = tuple(lasting[:MOST_SHOWN])
        return self._found


def _differing(
    queues: tuple[Queue, ...], figures: Mapping[QueueKey, Mapping[str, Any]]
) -> Iterator[tuple[Queue, str, int, int]]:
    for queue in queues:
        read = figures.get(queue.key)
        # Statistics that were not read with the list may be older than the figures.
        if not read or queue.details_at is not None or queue.type == "stream":
            continue
        for attribute in _COMPARED:
            management, prometheus = getattr(queue, attribute), read.get(attribute)
            if management is not None and prometheus is not None and management != prometheus:
                yield queue, attribute, management, prometheus


def _extended(known: _Apart | None, management: int, prometheus: int, now: float) -> _Apart:
    fresh = _Apart(now, 1, (management, management), (prometheus, prometheus))
    if known is None:
        return fresh
    low, high = known.management
    other_low, other_high = known.prometheus
    both = _Apart(
        known.since,
        known.readings + 1,
        (min(low, management), max(high, management)),
        (min(other_low, prometheus), max(other_high, prometheus)),
    )
    return fresh if both.overlap else both
