"""The end of a page: what changes between snapshots, made at the scrape or up to a second before it.

Ages are of the moment of the scrape. The rest (findings, probes, the exporter itself) is made ahead once a second, so
that a scrape need not; a scrape that finds it older makes it.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ackscope.clock import Clock, Instant
from exporter.exposition.encode import Format, Written, buffers, unite, write
from exporter.exposition.execute import Execution, Source, execute, report_metrics, together

AHEAD_SECONDS = 1.5
"""What was made ahead is good for so long: a little more than a second, so that none is missed by a hair."""


@dataclass(frozen=True, slots=True)
class _Ahead:
    """The part without ages, made at a moment; format -> bytes."""

    at: Instant
    texts: Mapping[Format, bytes]


class Present:
    """Makes it; safe for several scrapes at once.

    Args:
        live: name -> what makes the metrics that may be a second old.
        moments: name -> what makes those that are of the moment of the scrape, of names of their own.
        clock: times them.
    """

    def __init__(self, live: Mapping[str, Source], moments: Mapping[str, Source], clock: Clock) -> None:
        self._live, self._moments, self._clock = live, moments, clock
        self._ahead: _Ahead | None = None
        self._lock = threading.Lock()
        self._begun = 0
        self._latest: tuple[int, Execution] = (0, Execution((), {}))

    def make_ahead(self, reports: Sequence[Written], forms: Iterable[Format]) -> None:
        """Make all but the ages, for the scrapes of the next second.

        Args:
            reports: how those collectors did whose metrics are in the page before.
            forms: that will be asked for.
        """
        at, live = self._clock.now(), self._execute()
        families = _with_reports(live, reports)
        self._ahead = _Ahead(at, {form: b"".join(buffers(families, form)) for form in forms})

    def forget(self) -> None:
        """Something has changed that the next scrape must tell."""
        self._ahead = None

    def pieces(self, reports: Sequence[Written], form: Format) -> list[bytes]:
        """The end of a page at this moment, without the last line of OpenMetrics."""
        ahead = self._ahead
        if ahead is not None and form in ahead.texts and self._clock.now().since(ahead.at) <= AHEAD_SECONDS:
            ages = execute(self._moments, self._clock)
            return [ahead.texts[form], *buffers(ages.families, form)]
        return buffers(_with_reports(self._now(), reports), form)

    def _now(self) -> Execution:
        # One that began before we came may hold less than what is known now; one that began since will do for all.
        wanted = self._begun + 1
        with self._lock:
            if self._latest[0] < wanted:
                self._begun += 1
                self._latest = (self._begun, together([self._execute(), execute(self._moments, self._clock)]))
            return self._latest[1]

    def _execute(self) -> Execution:
        return execute(self._live, self._clock)


def _with_reports(live: Execution, reports: Sequence[Written]) -> list[Written]:
    return unite([*live.families, *reports, *write(report_metrics(live.reports))])
