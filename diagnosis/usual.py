"""Baseline bands for rules: as a limit, as a reason to suppress a finding, and as evidence.

A band is the usual range of a measure at this hour of the week. It can reveal what a fixed threshold misses, and
suppress what happens every night. Message loss is never suppressed.
"""

from collections.abc import Iterator

from ackscope.baselines import DAYS_NEEDED, HOUR_OF_WEEK, Band, NotYet
from ackscope.findings import Evidence, Facts, source
from ackscope.measures import measure as measure_of
from ackscope.records import ProbeOutcome
from ackscope.snapshot import Queue
from diagnosis.contract import View

SOURCE = source("rollups of the pipeline (history.rollups)", "table baselines")

_MAY_LOSE = ("max-length", "max-length-bytes", "message-ttl", "expires")
"""Settings by which a queue drops messages when it is long or when messages wait."""


def of_queue(view: View, queue: Queue, measure: str) -> Band | NotYet:
    """Return the band of a measure of a queue, or why there is none."""
    return view.usual("queue", queue.vhost, queue.name, measure)


def of_probe(view: View, outcome: ProbeOutcome, measure: str) -> Band | NotYet:
    """Return the band of a measure of a probe's stream, or why there is none."""
    return view.usual("probe", "", f"{outcome.probe}/{outcome.stream}/{outcome.node}", measure)


def is_sure(view: View, band: Band) -> bool:
    """Return whether a band has enough history to suppress a finding: three days of trouble must not look usual."""
    return band.scope == HOUR_OF_WEEK or band.values >= view.thresholds.usual.least


def band_facts(found: Band | NotYet, measure: str) -> Facts:
    """Return a band, or why there is none, as facts for the macros `band`, `band_range` and `band_basis`.

    Returns:
        `{"measure", "unit", "low", "high", "of_week", "values"}`, or `{"measure", "missing", "days", "days_needed"}`.
    """
    known = measure_of(measure)
    if isinstance(found, NotYet):
        return {
            "measure": known.words,
            "missing": found.reason.value,
            "days": found.days,
            "days_needed": DAYS_NEEDED,
        }
    # A band includes a margin for chance, so its edges may lie outside the possible values.
    return {
        "measure": known.words,
        "unit": known.unit,
        "low": max(0.0, found.low),
        "high": min(1.0, found.high) if known.unit == "share" else found.high,
        "of_week": found.scope == HOUR_OF_WEEK,
        "values": found.values,
    }


def baseline_evidence(view: View, found: Band | NotYet, measure: str) -> Iterator[Evidence]:
    """Yield the band, or why there is none yet, as evidence; nothing if no history is read at all."""
    if view.baselines is not None and view.baselines.made_at is not None:
        yield Evidence(key="baseline", source=SOURCE, facts={"band_of": band_facts(found, measure)})


def queue_baselines(view: View, queue: Queue, *measures: str) -> tuple[Evidence, ...]:
    """Return the bands of some measures of a queue as evidence."""
    return tuple(item for each in measures for item in baseline_evidence(view, of_queue(view, queue, each), each))


def usual_backlog(view: View, queue: Queue, ack_rate: float | None = None) -> Facts | None:
    """Return the facts for suppressing a backlog that is usual at this hour; None if it must not be suppressed.

    It is not suppressed if the queue may drop messages, if an alarm is in force, or if its consumers acknowledge less
    than usual.

    Args:
        view: the view that is being judged.
        queue: the queue with the backlog.
        ack_rate: acknowledgements per second; None if they do not matter.

    Returns:
        Facts `ready` and `band_of` of the shared reason `usual_backlog`.
    """
    band, acked = of_queue(view, queue, "ready"), of_queue(view, queue, "acked")
    if not isinstance(band, Band) or not is_sure(view, band) or queue.messages_ready is None:
        return None
    if queue.messages_ready > band.high or view.alarms or any(queue.setting(name) is not None for name in _MAY_LOSE):
        return None
    if ack_rate is not None and is_less(view, ack_rate, acked):
        return None
    return {"ready": queue.messages_ready, "band_of": band_facts(band, "ready")}


def is_less(view: View, value: float, found: Band | NotYet) -> bool:
    """Return whether a value is clearly below its band; False without a band."""
    return isinstance(found, Band) and value < view.thresholds.usual.slower * found.low


def is_more(view: View, value: float, found: Band | NotYet) -> bool:
    """Return whether a value is clearly above its band; False without a band."""
    return isinstance(found, Band) and value > view.thresholds.usual.times * found.high
