"""Diagnosis of a short observation, such as one look: the exporter's severities, and what findings would become.

A fault and a deployment look the same for some time, so a finding rises to a warning only after it has lasted. One
look is too short for that. It is judged twice: as the exporter would judge the same readings, and as if what they show
had lasted. A finding that only the second judgement makes urgent stays information and says what it would become.
"""

from collections.abc import Sequence
from dataclasses import replace

from ackscope.baselines import Baselines
from ackscope.clock import Instant
from ackscope.findings import Certainty, DiagnosisResult, Finding, Severity, flat
from ackscope.records import ProbeOutcome
from ackscope.snapshot import Queue
from diagnosis.engine import diagnose
from diagnosis.ledger import levels
from diagnosis.thresholds import Thresholds
from diagnosis.view import View
from diagnosis.window import Series, Window

_LEAST_MISSING, _MISSING_SHARE = 10, 0.3
"""Messages that must be missing, and their share of what was published meanwhile, to be worth more readings."""


def diagnose_briefly(
    window: Window, outcomes: Sequence[ProbeOutcome], now: Instant, baselines: Baselines | None = None
) -> DiagnosisResult:
    """Judge a cluster that was observed for less than a minute.

    Args:
        window: the readings.
        outcomes: outcomes of the probes of this cluster.
        now: the present time, from which the age of readings is computed.
        baselines: baseline bands for this hour of the week; None if unknown.

    Returns:
        The result with the exporter's thresholds. Findings that would be more urgent if they lasted have `if_it_lasts`,
        and come before other information.
    """
    result = diagnose(window, outcomes, now, Thresholds.brief(), baselines=baselines)
    lasting = diagnose(window, outcomes, now, Thresholds.as_if_lasting(), baselines=baselines)
    later = {finding.key: finding for finding in flat(lasting.findings) if finding.severity is not Severity.INFO}
    here = {finding.key for finding in flat(result.findings)}
    findings = [_rising(finding, later) for finding in result.findings]
    findings += [_not_yet(finding) for finding in lasting.findings if finding.key in later and finding.key not in here]
    return replace(result, findings=tuple(sorted(findings, key=_is_settled_information)))


def unsettled(result: DiagnosisResult, seconds: float) -> list[Finding]:
    """Return the findings that a longer observation of at most `seconds` can settle, and that would then be the worst.

    What is already as bad is reported at once: its cause may be gone before something less certain is settled.
    """
    worst = min((finding.severity.urgency for finding in result.findings), default=Severity.INFO.urgency)
    return [
        finding
        for finding in result.findings
        if finding.if_it_lasts is not None and finding.if_it_lasts.urgency < worst and _missing(finding) <= seconds
    ]


def may_be_losing(window: Window, now: Instant) -> bool:
    """Return whether more messages are missing at the end of an observation than at its begin, in one queue at least.

    The counters of two readings differ in age, so this proves no loss. Further readings do, or show that there is none.
    """
    view = View(window, (), now, Thresholds.brief())
    return any(_misses_more(view.history(queue)) for queue in view.queues if queue.stats.publish)


def _misses_more(history: Series[Queue]) -> bool:
    terms = [levels(seen.value) for seen in (history[:1] + history[-1:] if len(history) > 1 else ())]
    if len(terms) < 2 or None in terms:
        return False
    first, last = (each for each in terms if each is not None)
    missing = last.discarded - first.discarded + last.vanished - first.vanished - max(0, last.held - first.held)
    return missing >= max(_LEAST_MISSING, _MISSING_SHARE * (last.arrived - first.arrived))


def _missing(finding: Finding) -> float:
    """Return the seconds until a finding rises, if its facts say so; else 0."""
    after = finding.facts.get("warning_after_seconds")
    if finding.severity is not Severity.INFO or not isinstance(after, int | float):
        return 0.0
    # The broker may tell that it lasts for longer than it was seen.
    held = finding.facts.get("held_seconds")
    lasted = max(finding.seen_seconds or 0.0, held if isinstance(held, int | float) else 0.0)
    return float(after) - lasted


def _rising(finding: Finding, later: dict[tuple[str, str, str, str], Finding]) -> Finding:
    then = later.get(finding.key)
    rises = then is not None and then.severity.urgency < finding.severity.urgency
    return replace(finding, if_it_lasts=then.severity) if then is not None and rises else finding


def _not_yet(finding: Finding) -> Finding:
    return replace(
        finding,
        severity=Severity.INFO,
        certainty=Certainty.EARLY,
        if_it_lasts=finding.severity,
        consequences=(),
    )


def _is_settled_information(finding: Finding) -> bool:
    return finding.severity is Severity.INFO and finding.if_it_lasts is None
