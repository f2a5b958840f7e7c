"""Runs every rule and ranks the findings."""

from collections.abc import Sequence
from dataclasses import replace

from ackscope.baselines import Baselines
from ackscope.clock import Instant
from ackscope.findings import DiagnosisResult, Finding, Impact, Inconclusive, Severity, Suppressed, flat
from ackscope.records import ProbeOutcome
from ackscope.second_source import SettingsUnknown
from diagnosis.aftermath import ended_losses
from diagnosis.contract import Rule, View
from diagnosis.grouping import group_by_cause
from diagnosis.hysteresis import apply_hysteresis
from diagnosis.laws import without_explained
from diagnosis.origins import origins_of, with_origins
from diagnosis.preconditions import blind_spots, missing, only_metrics
from diagnosis.process_view import named_processes, with_processes
from diagnosis.redating import redated_result
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

    A rule that raises is a programming error and is not caught here: the caller counts it. The exception is a rule that
    asks for a setting of a queue whose figures alone are known: it is inconclusive.

    Args:
        window: the recent readings of the broker.
        outcomes: outcomes of the probes of this cluster.
        now: the present time, from which the age of readings is computed.
        thresholds: thresholds of the rules.
        previous: the previous result for this cluster; a lasting finding keeps its earliest `since`, and one that
            ended stays for `thresholds.hold` seconds.
        rules: the rules to run.
        baselines: baseline bands of this cluster for this hour of the week; None if unknown.

    Returns:
        The result, with findings worst first: message loss, stopped, slow, risk; then by size of the queue. The order
        of objects in a snapshot does not matter.
    """
    now = window.now(now)
    if previous is not None and previous.moment is not None and (seconds := now.wall_clock_step(previous.moment)):
        previous = redated_result(previous, seconds)
    view = View(window, outcomes, now, thresholds, baselines)
    seen = with_processes(window, thresholds.own_prefixes) if view.lists_no_clients else window
    # A view of its own: without connections and clients, most rules would judge what they cannot know.
    processes = View(seen, outcomes, now, thresholds, baselines) if seen is not window else view
    origins = origins_of(seen.latest)
    found: list[Finding] = []
    gaps: list[Inconclusive] = []
    aside: list[Suppressed] = []
    for rule in rules:
        judged_view = processes if rule.by_process else view
        lacking = list(missing(rule, judged_view))
        if lacking:
            gaps += lacking
            continue
        gaps += blind_spots(rule, judged_view)
        try:
            for answer in rule.evaluate(judged_view):
                if isinstance(answer, Inconclusive):
                    # A check of several rules may say what blind spots said.
                    gaps += [answer] if answer not in gaps else []
                elif isinstance(answer, Suppressed):
                    aside.append(answer)
                else:
                    named = answer if judged_view is view else named_processes(answer)
                    found.append(with_origins(named, origins))
        except SettingsUnknown:
            gap = only_metrics(rule.name)
            if gap not in gaps:
                gaps.append(gap)
    before = previous.findings if previous else ()
    lasting = apply_hysteresis(found, before, now.iso(), thresholds.hold)
    judged = _BY_NAME.keys() - {gap.rule for gap in gaps}
    lasting += ended_losses(before, lasting, now.iso(), _BY_NAME, judged)
    lasting = without_explained(lasting, {each.key for each in found}, previous.at if previous else None)
    ranked = sorted(lasting, key=lambda each: _rank(view, each))
    causes = group_by_cause([each for each in ranked if not each.is_over], _BY_NAME, processes)
    causes += [each for each in ranked if each.is_over]
    verdict = DiagnosisResult(
        cluster=window.cluster,
        at=now.iso(),
        findings=tuple(_with_impact(each) for each in sorted(causes, key=lambda each: _rank(view, each))),
        inconclusive=tuple(gaps),
        suppressed=tuple(sorted(aside, key=lambda each: (each.rule, each.subject.vhost or "", each.subject.name))),
        checked=tuple(rule.name for rule in rules),
        moment=now,
    )
    # Cached results may refer to the view and so to all readings. Clearing them breaks the reference cycle.
    view.made.clear()
    processes.made.clear()
    return verdict


def _rank(view: View, finding: Finding) -> tuple[int, int, int, tuple[str, ...]]:
    """Return the sort key: message loss, stopped, slow, risk. A cause ranks by its worst consequence."""
    impact = min(_impact(each).rank for each in flat([finding]))
    return (impact, finding.severity.urgency, -_size(view, finding), finding.key)


def _impact(finding: Finding) -> Impact:
    rule = _BY_NAME.get(finding.rule)
    return Impact.RISK if finding.severity is Severity.INFO or rule is None else finding.own_impact or rule.impact


def _with_impact(finding: Finding) -> Finding:
    consequences = tuple(_with_impact(each) for each in finding.consequences)
    return replace(finding, impact=_impact(finding), consequences=consequences)


def _size(view: View, finding: Finding) -> int:
    """Return the number of messages in the queue, or in the cluster if the subject is not a queue."""
    if finding.subject.kind != "queue":
        return view.messages
    queue = view.any_queue(finding.subject.vhost, finding.subject.name)
    return (queue.messages or 0) if queue else 0
