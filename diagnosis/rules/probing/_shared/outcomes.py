"""Helpers of rules about probes: recent outcomes, their medians and errors."""

from ackscope.findings import Subject
from ackscope.records import ProbeOutcome, ProbeStep
from diagnosis.contract import View


def recent(view: View, *probes: str) -> tuple[ProbeOutcome, ...]:
    """Return the streams of some probes that reported recently; streams of an ended probe process are left out."""
    return tuple(
        outcome
        for probe in probes
        for outcome in view.outcomes_of(probe)
        if view.now.wall - outcome.at <= view.thresholds.data_age
    )


def median(outcome: ProbeOutcome, step: str) -> float | None:
    """Return the median seconds of one step in the last minute; None if it was not timed."""
    timed = outcome.steps.get(step)
    return None if timed is None else timed.seconds.p50


def own_error(outcome: ProbeOutcome) -> float:
    """Return the delay of the probe itself in seconds, p99 of the last minute."""
    return max(outcome.send_delay.p99 or 0.0, outcome.loop_lag.p99 or 0.0)


def exceeds_own_error(outcome: ProbeOutcome, seconds: float) -> bool:
    """Return whether a delay is more than the probe's own error can explain.

    `doubtful` is not used: a probe that was late by a few ms spoils a median of 1 ms, but not a delay of hundreds of
    ms.
    """
    return seconds >= 2 * own_error(outcome)


def failing(outcome: ProbeOutcome, step: str) -> ProbeStep | None:
    """Return the step if its latest attempt failed, else None."""
    timed = outcome.steps.get(step)
    return timed if timed is not None and timed.reason is not None else None


def probe_subject(outcome: ProbeOutcome) -> Subject:
    """The stream as the subject of a finding."""
    name = stream_name(outcome)
    return Subject(kind="probe", name=name, vhost=outcome.vhost or None, node=outcome.node or None)


def stream_name(outcome: ProbeOutcome) -> str:
    """Return the name of a stream: `confirm.quorum`, or `rtt` for a probe with one stream only."""
    return outcome.probe if outcome.stream == outcome.probe else f"{outcome.probe}.{outcome.stream}"
