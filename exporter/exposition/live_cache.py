"""The end of a page: what changes between snapshots, made at the scrape or up to a second before it.

Ages are of the moment of the scrape. The rest (findings, probes, the exporter itself) is made ahead once a second, so
that a scrape need not; a scrape that finds it older makes it.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ackscope.clock import Clock, Instant
from exporter.exposition.encode import EncodedFamily, Format, encode, merge_families, page_chunks
from exporter.exposition.execute import CollectorRun, Source, execute, merge_runs, report_metrics

PRERENDERED_SECONDS = 1.5
"""What was made ahead is good for so long: a little more than a second, so that none is missed by a hair."""


@dataclass(frozen=True, slots=True)
class _Prerendered:
    """The part without ages, made at a moment; format -> bytes."""

    at: Instant
    texts: Mapping[Format, bytes]


class LiveMetricsCache:
    """Makes it; safe for several scrapes at once.

    Args:
        live: name -> what makes the metrics that may be a second old.
        moments: name -> what makes those that are of the moment of the scrape, of names of their own.
        clock: times them.
    """

    def __init__(self, per_second: Mapping[str, Source], per_scrape: Mapping[str, Source], clock: Clock) -> None:
        self._per_second, self._per_scrape, self._clock = per_second, per_scrape, clock
        self._prerendered: _Prerendered | None = None
        self._lock = threading.Lock()
        self._started = 0
        self._latest: tuple[int, CollectorRun] = (0, CollectorRun((), {}))

    def prerender(self, reports: Sequence[EncodedFamily], forms: Iterable[Format]) -> None:
        """Make all but the ages, for the scrapes of the next second.

        Args:
            reports: how those collectors did whose metrics are in the page before.
            forms: that will be asked for.
        """
        at, per_second = self._clock.now(), self._execute()
        families = _with_reports(per_second, reports)
        self._prerendered = _Prerendered(at, {form: b"".join(page_chunks(families, form)) for form in forms})

    def invalidate(self) -> None:
        """Something has changed that the next scrape must tell."""
        self._prerendered = None

    def pieces(self, reports: Sequence[EncodedFamily], form: Format) -> list[bytes]:
        """The end of a page at this moment, without the last line of OpenMetrics."""
        prerendered = self._prerendered
        if (
            prerendered is not None
            and form in prerendered.texts
            and self._clock.now().since(prerendered.at) <= PRERENDERED_SECONDS
        ):
            ages = execute(self._per_scrape, self._clock)
            return [prerendered.texts[form], *page_chunks(ages.families, form)]
        return page_chunks(_with_reports(self._now(), reports), form)

    def _now(self) -> CollectorRun:
        # One that began before we came may hold less than what is known now; one that began since will do for all.
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
