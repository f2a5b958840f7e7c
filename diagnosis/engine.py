"""Asks every rule, and ranks what they found."""

from collections.abc import Sequence
from dataclasses import replace

from ackscope.clock import Instant
from ackscope.findings import CannotTell, Finding, Severity, Verdict
from ackscope.records import ProbeOutcome
from diagnosis.contract import Harm, Rule, View
from diagnosis.preconditions import blind_spots, missing
from diagnosis.rules import RULES
from diagnosis.thresholds import Thresholds
from diagnosis.window import Window

_URGENCY = {Severity.CRITICAL: 0, Severity.WARNING: 1, Severity.INFO: 2}


def diagnose(
    window: Window,
    outcomes: Sequence[ProbeOutcome],
    now: Instant,
    thresholds: Thresholds,
    previous: Verdict | None = None,
) -> Verdict:
    """Judge one cluster.

    A rule that raises is a programming error and is not caught here: the caller counts it.

    Args:
        window: what the broker said lately.
        outcomes: what the probes lived through, of this cluster.
        now: the present moment, against which the age of readings is taken.
        thresholds: the numbers to judge by.
        previous: the verdict before, of the same cluster; a finding that lasts keeps the earliest `since` told.

    Returns:
        Findings, worst first: who loses messages, who is stopped, who is slow, what is a risk; then the larger
        queue first. The order of objects in a snapshot plays no part.
    """
    view = View(window, outcomes, now, thresholds)
    ranked: list[tuple[tuple[int, int, int], tuple[str, ...], Finding]] = []
    gaps: list[CannotTell] = []
    for rule in RULES:
        lacking = list(missing(rule, view))
        if lacking:
            gaps += lacking
            continue
        gaps += blind_spots(rule, view)
        for answer in rule.evaluate(view):
            if isinstance(answer, CannotTell):
                gaps.append(answer)
            else:
                ranked.append((_rank(rule, view, answer), answer.key, answer))
    earlier = {finding.key: finding.since for finding in previous.findings} if previous else {}
    return Verdict(
        cluster=window.cluster,
        at=now.iso(),
        findings=tuple(_lasting(finding, earlier) for _, _, finding in sorted(ranked, key=lambda item: item[:2])),
        cannot_tell=tuple(gaps),
        checked=tuple(rule.name for rule in RULES),
    )


def _rank(rule: Rule, view: View, finding: Finding) -> tuple[int, int, int]:
    harm = Harm.RISKS if finding.severity is Severity.INFO else rule.harm
    return (harm, _URGENCY[finding.severity], -_size(view, finding))


def _size(view: View, finding: Finding) -> int:
    """Messages that are concerned: those of the queue, or of the cluster."""
    if finding.subject.kind != "queue":
        return sum(queue.messages or 0 for queue in view.all_queues)
    place = (finding.subject.vhost, finding.subject.name)
    return next((queue.messages or 0 for queue in view.all_queues if queue.key == place), 0)


def _lasting(finding: Finding, earlier: dict[tuple[str, str, str, str], str | None]) -> Finding:
    before = earlier.get(finding.key)
    # Both are ISO 8601 in UTC to the second: text order is time order.
    return replace(finding, since=before) if before and finding.since and before < finding.since else finding
