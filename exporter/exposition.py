"""The text of `/metrics`, from memory: what comes from snapshots is made once a snapshot, the rest at every scrape."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ackscope.clock import Clock
from ackscope.snapshot import Snapshot
from exporter.collectors import COLLECTORS
from exporter.collectors.contract import Limits
from exporter.execute import Report, Source, execute, report_metrics
from exporter.render import render
from exporter.state import State


@dataclass(frozen=True, slots=True)
class _Cached:
    generation: int
    text: str
    reports: Mapping[str, Report]


class Exposition:
    """Makes the text; safe for several scrapes at once.

    Args:
        state: what is known.
        limits: the caps on series.
        live: name -> what makes the metrics that change between snapshots.
        clock: times the collectors.
    """

    def __init__(self, state: State, limits: Limits, live: Mapping[str, Source], clock: Clock) -> None:
        self._state, self._limits, self._live, self._clock = state, limits, live, clock
        self._lock = threading.Lock()
        self._cached: _Cached | None = None

    def text(self) -> str:
        """All metrics of this moment."""
        cached = self._from_snapshots()
        live = execute(self._live, self._clock)
        reports = report_metrics({**cached.reports, **live.reports})
        return cached.text + render([*live.metrics, *reports])

    def _from_snapshots(self) -> _Cached:
        with self._lock:  # two scrapes at once make it once
            generation = self._state.generation
            if self._cached is None or self._cached.generation != generation:
                snapshots = self._state.snapshots()
                made = execute(collector_sources(snapshots, self._limits), self._clock)
                self._cached = _Cached(generation, render(made.metrics), made.reports)
            return self._cached


def collector_sources(snapshots: Sequence[Snapshot], limits: Limits) -> dict[str, Source]:
    """Every collector, ready to be run on `snapshots`."""
    return {name: partial(collector.collect, snapshots, limits) for name, collector in COLLECTORS.items()}
