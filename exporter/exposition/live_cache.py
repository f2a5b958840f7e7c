"""Renders the part of a page that changes between snapshots, at the scrape or up to a second before.

Ages are computed at the scrape. The rest (findings, probes, the exporter itself) is rendered in advance once a second.
If it is outdated, the scrape renders it.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ackscope.clock import Clock, Instant
from exporter.exposition.encode import EncodedFamily, Format, encode, merge_families, page_chunks
from exporter.exposition.execute import CollectorRun, Source, execute, merge_runs, report_metrics

PRERENDERED_SECONDS = 1.5
"""Seconds for which the prerendered part is valid. Slightly more than its interval, to allow for a small delay."""


@dataclass(frozen=True, slots=True)
class _Prerendered:
    """The live part without ages, by format, and the time of rendering."""

    at: Instant
    texts: Mapping[Format, bytes]


class LiveMetricsCache:
    """Thread-safe cache of the metrics that change between snapshots.

    Args:
        per_second: name -> source whose metrics may be a second old.
        per_scrape: name -> source that runs at every scrape. Its metric names must not overlap with `per_second`.
        clock: measures the duration of the sources.
    """

    def __init__(self, per_second: Mapping[str, Source], per_scrape: Mapping[str, Source], clock: Clock) -> None:
        self._per_second, self._per_scrape, self._clock = per_second, per_scrape, clock
        self._prerendered: _Prerendered | None = None
        self._lock = threading.Lock()
        self._started = 0
        self._latest: tuple[int, CollectorRun] = (0, CollectorRun((), {}))

    def prerender(self, reports: Sequence[EncodedFamily], forms: Iterable[Format]) -> None:
        """Render everything except ages for the scrapes of the next second.

        Args:
            reports: encoded reports of the collectors of the snapshot part.
            forms: formats to render.
        """
        at, per_second = self._clock.now(), self._execute()
        families = _with_reports(per_second, reports)
        self._prerendered = _Prerendered(at, {form: b"".join(page_chunks(families, form)) for form in forms})

    def invalidate(self) -> None:
        """Discard the prerendered part, so that the next scrape shows a change at once."""
        self._prerendered = None

    def chunks(self, reports: Sequence[EncodedFamily], form: Format) -> list[bytes]:
        """Return the current live part of a page, without the last line of OpenMetrics."""
        prerendered = self._fresh(form)
        if prerendered is not None:
            ages = execute(self._per_scrape, self._clock)
            return [prerendered.texts[form], *page_chunks(ages.families, form)]
        return page_chunks(_with_reports(self._now(), reports), form)

    def is_prerendered(self, form: Format) -> bool:
        """Whether `chunks` would only have to execute the ages."""
        return self._fresh(form) is not None

    def _fresh(self, form: Format) -> _Prerendered | None:
        prerendered = self._prerendered
        if prerendered is None or form not in prerendered.texts:
            return None
        return prerendered if self._clock.now().since(prerendered.at) <= PRERENDERED_SECONDS else None

    def _now(self) -> CollectorRun:
        # A run that began before this scrape may be outdated. A run that began later serves all waiting scrapes.
        needed = self._started + 1
        with self._lock:
            if self._latest[0] < needed:
                self._started += 1
                self._latest = (self._started, merge_runs([self._execute(), execute(self._per_scrape, self._clock)]))
            return self._latest[1]

    def _execute(self) -> CollectorRun:
        return execute(self._per_second, self._clock)


def _with_reports(per_second: CollectorRun, reports: Sequence[EncodedFamily]) -> list[EncodedFamily]:
    return merge_families([*per_second.families, *reports, *encode(report_metrics(per_second.reports))])
