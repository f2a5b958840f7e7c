"""probe-instrument-doubtful: the probes themselves were late; their figures describe their machine, not the broker.

The probes measure their own error: how late a message was sent, and how late the event loop woke up.
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Severity, Subject, Unit, source
from ackscope.records import ProbeOutcome
from diagnosis.contract import RuleResult, View
from diagnosis.rules.probing._shared.outcomes import own_error, recent, stream_name

NAME = "probe-instrument-doubtful"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for all streams that the probe process itself spoiled, because they share one machine."""
    probes = sorted({outcome.probe for outcome in view.outcomes})
    spoiled = [outcome for outcome in recent(view, *probes) if outcome.doubtful and _spoils(view, outcome)]
    if spoiled:
        yield _finding(view, sorted(spoiled, key=lambda each: (-own_error(each), stream_name(each), each.node)))


def _spoils(view: View, outcome: ProbeOutcome) -> bool:
    """Return whether the stream was late, and not just short of messages."""
    limits = view.thresholds.probing
    return own_error(outcome) >= max(limits.doubt_least, limits.doubt_share * (outcome.confirm.p50 or 0.0))


def _finding(view: View, spoiled: list[ProbeOutcome]) -> Finding:
    worst = own_error(spoiled[0])
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if worst >= view.thresholds.probing.doubt_bad else Severity.INFO,
        subject=Subject(kind="probe", name="all"),
        facts={"worst_seconds": worst, "streams": list(dict.fromkeys(map(stream_name, spoiled)))},
        certainty=Certainty.CERTAIN,
        evidence=tuple(
            Evidence(
                key="late",
                value=own_error(each),
                unit=Unit.SECONDS,
                source=source(f"probe {stream_name(each)}", "send_delay", "loop_lag"),
                facts={
                    "stream": stream_name(each),
                    "tolerable_seconds": max(0.001, 0.1 * (each.confirm.p50 or 0.0)),
                },
            )
            for each in spoiled[:3]
        ),
    )
