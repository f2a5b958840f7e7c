"""probe-redelivered (H05): messages of the delivery probe were redelivered; its connection was lost and reopened.

The same happens to every consumer on that path: its unacknowledged messages are delivered again with `redelivered`
set, and may be processed twice.
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Facts, Finding, Severity, source
from ackscope.records import Outcome, ProbeOutcome
from diagnosis.contract import RuleResult, View
from diagnosis.rules.probing._shared.outcomes import probe_subject, recent, stream_name

NAME = "probe-redelivered"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every stream whose last minute was not clean and that had redeliveries."""
    for outcome in recent(view, "delivery"):
        if (outcome.redeliveries or outcome.duplicates) and not outcome.success:
            yield _finding(outcome)


def _finding(outcome: ProbeOutcome) -> Finding:
    facts: Facts = {
        "stream": stream_name(outcome),
        "redeliveries": outcome.redeliveries or 0,
        "duplicates": outcome.duplicates or 0,
        "connects": outcome.connects,
        "lost": outcome.outcomes.get(Outcome.LOST.value, 0),
    }
    probe = f"probe {stream_name(outcome)}"
    return Finding(
        rule=NAME,
        severity=Severity.INFO,
        subject=probe_subject(outcome),
        facts=facts,
        certainty=Certainty.CERTAIN,
        evidence=(
            Evidence(key="redelivered", source=source(probe, "redeliveries", "duplicates")),
            Evidence(key="connections", source=source(probe, "connects", "outcomes")),
        ),
    )
