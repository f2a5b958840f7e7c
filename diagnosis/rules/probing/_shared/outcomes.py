"""What rules about probes ask of their outcomes."""

from ackscope.findings import Subject
from ackscope.records import ProbeOutcome, ProbeStep
from diagnosis.contract import View


def recent(view: View, *probes: str) -> tuple[ProbeOutcome, ...]:
    """The streams of some probes that reported recently; those of a probe process that ended are not judged."""
    return tuple(
        outcome
        for probe in probes
        for outcome in view.outcomes_of(probe)
        if view.now.wall - outcome.at <= view.thresholds.data_age
    )


def median(outcome: ProbeOutcome, step: str) -> float | None:
    """The median of one step in the last minute, seconds; None where it was not timed."""
    timed = outcome.steps.get(step)
    return None if timed is None else timed.seconds.p50


def own_error(outcome: ProbeOutcome) -> float:
    """How late the probe itself was, p99 of the last minute, seconds."""
    return max(outcome.send_delay.p99 or 0.0, outcome.loop_lag.p99 or 0.0)


def exceeds_own_error(outcome: ProbeOutcome, seconds: float) -> bool:
    """Whether a delay is more than the probe's own error can explain.

    Not by `doubtful`: a probe that was late by a few milliseconds spoils a median of one, but not a delay of hundreds.
    """
    return seconds >= 2 * own_error(outcome)


def failing(outcome: ProbeOutcome, step: str) -> ProbeStep | None:
    """A step whose latest attempt failed."""
    timed = outcome.steps.get(step)
    return timed if timed is not None and timed.reason is not None else None


def probe_subject(outcome: ProbeOutcome) -> Subject:
    """The stream as the subject of a finding."""
    name = stream_name(outcome)
    return Subject(kind="probe", name=name, vhost=outcome.vhost or None, node=outcome.node or None)


def stream_name(outcome: ProbeOutcome) -> str:
    """The stream by its name: `confirm.quorum`, or `rtt` where a probe has one only."""
    return outcome.probe if outcome.stream == outcome.probe else f"{outcome.probe}.{outcome.stream}"
