"""Diagnosis of a short observation, such as one look: the exporter's severities, and what findings would become.

A fault and a deployment look the same for some time, so a finding rises to a warning only after it has lasted. One
look is too short for that. It is judged twice: as the exporter would judge the same readings, and as if what they show
had lasted. A finding that only the second judgement makes urgent stays information and says what it would become.
"""

from collections.abc import Sequence
from dataclasses import replace

from ackscope.baselines import Baselines
from ackscope.clock import Instant
from ackscope.findings import Certainty, DiagnosisResult, Facts, Finding, Impact, Severity, flat
from ackscope.records import ProbeOutcome
from ackscope.snapshot import Queue
from diagnosis.engine import diagnose
from diagnosis.ledger import levels
from diagnosis.pages import pages
from diagnosis.rules import RULES
from diagnosis.thresholds import Thresholds
from diagnosis.view import View
from diagnosis.window import Series, Window

_AFTER = "warning_after_seconds"
"""Fact: seconds from which on a finding is more than information."""
_LEAST_MISSING, _MISSING_SHARE = 10, 0.3
"""Messages that must be missing, and their share of what was published meanwhile, to be worth more readings."""
_FEW, _FEW_SHARE = 2, 0.03
"""The same for a queue that is suspected already."""
_REMOVE = ("dead-letter-exchange", "message-ttl", "max-length", "max-length-bytes", "expires")
"""Settings by which messages leave a queue unread, or go elsewhere."""


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


def may_be_losing(window: Window, now: Instant, result: DiagnosisResult) -> bool:
    """Return whether more messages are missing at the end of an observation than at its begin, in one queue at least.

    The counters of two readings differ in age, so this proves no loss. Further readings do, or show that there is none.
    A few messages are enough for a queue that an early finding says will lose some, and for one that has no setting by
    which messages leave it and that misses some since its counters began.
    """
    view = View(window, (), now, Thresholds.brief())
    losses = {rule.name for rule in RULES if rule.impact is Impact.LOSS}
    early = (each for each in result.findings if each.if_it_lasts is not None and each.rule in losses)
    suspected = {(each.vhost, each.name) for finding in early for each in finding.involved.queues}
    return any(
        _misses_more(view.history(queue), few=queue.key in suspected or _has_lost(queue))
        for queue in view.queues
        if queue.stats.publish
    )


def _has_lost(queue: Queue) -> bool:
    """Return whether messages are missing since the counters of a queue began, and no setting removes any."""
    now = levels(queue)
    if now is None or not queue.settings_known or any(queue.setting(name) is not None for name in _REMOVE):
        return False
    return now.discarded + now.vanished - now.held >= max(_LEAST_MISSING, _FEW_SHARE * now.arrived)


def _misses_more(history: Series[Queue], *, few: bool) -> bool:
    missing, arrived = _missing_between(history)
    if not few:
        return missing >= max(_LEAST_MISSING, _MISSING_SHARE * arrived)
    # What is missing because the counters differ in age does not go on to grow.
    goes_on = len(history) < 3 or _missing_between(history[len(history) // 2 :])[0] > 0
    return goes_on and missing >= max(_FEW, _FEW_SHARE * arrived)


def _missing_between(history: Series[Queue]) -> tuple[int, int]:
    """Return how many messages are missing at the last reading and were not at the first, and how many arrived."""
    first, last = (levels(history[0].value), levels(history[-1].value)) if history else (None, None)
    if first is None or last is None:
        return 0, 0
    missing = last.discarded - first.discarded + last.vanished - first.vanished - max(0, last.held - first.held)
    return missing, last.arrived - first.arrived


def _missing(finding: Finding) -> float:
    """Return the seconds until a finding rises, if its facts say so; else 0."""
    after = finding.facts.get(_AFTER)
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
        facts=_with_usual_time(finding),
        severity=Severity.INFO,
        certainty=Certainty.EARLY,
        if_it_lasts=finding.severity,
        consequences=(),
    )


def _with_usual_time(finding: Finding) -> Facts:
    """Return the facts with the exporter's time until a warning, instead of that of the second judgement.

    Of the thresholds of its rule, that with the stated time counts, and the longest if there are several.
    """
    stated = finding.facts.get(_AFTER)
    own = (key.split(".") for key in pages()[finding.rule].thresholds)
    usual, lasting = Thresholds.brief(), Thresholds.as_if_lasting()
    times = [
        float(real)
        for group, name in own
        if (real := getattr(getattr(usual, group), name)) != getattr(getattr(lasting, group), name) == stated
    ]
    return {**finding.facts, _AFTER: max(times)} if times else finding.facts


def _is_settled_information(finding: Finding) -> bool:
    return finding.severity is Severity.INFO and finding.if_it_lasts is None
