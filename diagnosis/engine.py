"""Asks every rule, and ranks what they found."""

from collections.abc import Sequence
from dataclasses import replace

from ackscope.baselines import Baselines
from ackscope.clock import Instant
from ackscope.findings import DiagnosisResult, Finding, Impact, Inconclusive, Severity, Suppressed, flat
from ackscope.records import ProbeOutcome
from diagnosis.contract import Rule, View
from diagnosis.grouping import group_by_cause
from diagnosis.hysteresis import apply_hysteresis
from diagnosis.preconditions import blind_spots, missing
from diagnosis.rules import RULES
from diagnosis.thresholds import Thresholds
from diagnosis.window import Window

_BY_NAME = {rule.name: rule for rule in RULES}


def diagnose(
    window: Window,
    outcomes: Sequence[ProbeOutcome],
    now: Instant,
    thresholds: Thresholds,
    previous: DiagnosisResult | None = None,
    rules: Sequence[Rule] = RULES,
    baselines: Baselines | None = None,
) -> DiagnosisResult:
    """Judge one cluster.

    A rule that raises is a programming error and is not caught here: the caller counts it.

    Args:
        window: what the broker said lately.
        outcomes: what the probes lived through, of this cluster.
        now: the present moment, against which the age of readings is taken.
        thresholds: the numbers to judge by.
        previous: the verdict before, of the same cluster; a finding that lasts keeps the earliest `since` told, and
            one that ended stays for `thresholds.hold`.
        rules: those that are asked.
        baselines: what is usual of this cluster at this hour of the week; None where that is not known.

    Returns:
        Findings, worst first: who loses messages, who is stopped, who is slow, what is a risk; then the larger
        queue first. The order of objects in a snapshot plays no part.
    """
    view = View(window, outcomes, now, thresholds, baselines)
    found: list[Finding] = []
    gaps: list[Inconclusive] = []
    aside: list[Suppressed] = []
    for rule in rules:
        lacking = list(missing(rule, view))
        if lacking:
            gaps += lacking
            continue
        gaps += blind_spots(rule, view)
        for answer in rule.evaluate(view):
            if isinstance(answer, Inconclusive):
                gaps.append(answer)
            elif isinstance(answer, Suppressed):
                aside.append(answer)
            else:
                found.append(answer)
    before = previous.findings if previous else ()
    ranked = sorted(apply_hysteresis(found, before, now.iso(), thresholds.hold), key=lambda each: _rank(view, each))
    causes = group_by_cause(ranked, _BY_NAME, view)
    verdict = DiagnosisResult(
        cluster=window.cluster,
        at=now.iso(),
        findings=tuple(_with_impact(each) for each in sorted(causes, key=lambda each: _rank(view, each))),
        inconclusive=tuple(gaps),
        suppressed=tuple(sorted(aside, key=lambda each: (each.rule, each.subject.vhost or "", each.subject.name))),
        checked=tuple(rule.name for rule in rules),
    )
    # What is kept may hold the view, and so all its readings: such a ring would stay until cycles are searched for.
    view.made.clear()
    return verdict


def _rank(view: View, finding: Finding) -> tuple[int, int, int, tuple[str, ...]]:
    """Who loses messages first, then who is stopped, who is slow, what is a risk; of a cause, by its worst."""
    impact = min(_impact(each).rank for each in flat([finding]))
    return (impact, finding.severity.urgency, -_size(view, finding), finding.key)


def _impact(finding: Finding) -> Impact:
    rule = _BY_NAME.get(finding.rule)
    return Impact.RISK if finding.severity is Severity.INFO or rule is None else rule.impact


def _with_impact(finding: Finding) -> Finding:
    consequences = tuple(_with_impact(each) for each in finding.consequences)
    return replace(finding, impact=_impact(finding), consequences=consequences)


def _size(view: View, finding: Finding) -> int:
    """Messages that are concerned: those of the queue, or of the cluster."""
    if finding.subject.kind != "queue":
        return view.messages
    queue = view.any_queue(finding.subject.vhost, finding.subject.name)
    return (queue.messages or 0) if queue else 0
