"""Formats a diagnosis for a terminal: worst finding first, short lines, each command on its own line. Pure."""

from collections.abc import Iterable, Sequence
from textwrap import wrap

from ackscope.findings import Certainty, Severity
from ackscope.format import duration
from ackscope.records import ProbeOutcome
from ackscope.reports import (
    EvidenceReport,
    FindingReport,
    InconclusiveReport,
    Step,
    SuppressedReport,
    runbook_command,
)
from diagnosis.text import DiagnosisReport

NARROWEST, WIDEST = 40, 100


def report(
    verdict: DiagnosisReport,
    broker: str | None,
    outcomes: Sequence[ProbeOutcome],
    width: int,
    *,
    everything: bool = False,
) -> str:
    """Return the whole report.

    Args:
        verdict: the result of the diagnosis.
        broker: version of RabbitMQ; None if unknown.
        outcomes: results of the probes, if any ran.
        width: columns of the terminal, used between 40 and 100; commands are never wrapped.
        everything: show information, suppressed findings and permanently inconclusive rules in full.
    """
    columns = max(NARROWEST, min(width, WIDEST))
    name = f"RabbitMQ {broker}" if broker else "RabbitMQ of unknown version"
    blocks = [_lines(f"{verdict.cluster}: {name}, {verdict.at}", columns)]
    pressing = [each for each in verdict.findings if everything or _is_pressing(each)]
    blocks += [_finding(finding, columns) for finding in pressing]
    if not any(finding.severity is not Severity.INFO for finding in verdict.findings):
        early = any(each.if_it_lasts is not None or each.certainty is Certainty.EARLY for each in verdict.findings)
        summary = _EARLY if early else "nothing to act on"
        summary = summary if verdict.findings else "nothing wrong found"
        blocks.append(_lines(f"{summary}; {len(verdict.checked)} rules were checked", columns))
    information = [finding for finding in verdict.findings if finding not in pressing]
    if information:
        blocks.append("\n".join(_information(finding, columns) for finding in information))
    blocks += _inconclusive(verdict.inconclusive, columns, everything=everything)
    blocks += _suppressed(verdict.suppressed, columns, everything=everything)
    if outcomes:
        blocks.append("\n".join(_lines(f"probe: {_outcome(outcome)}", columns) for outcome in outcomes))
    return "\n\n".join(blocks) + "\n"


_EARLY = "nothing is certain yet; --watch, or a longer --within, shows whether it lasts"


def _is_pressing(finding: FindingReport) -> bool:
    return finding.severity is not Severity.INFO or finding.if_it_lasts is not None


def _finding(finding: FindingReport, columns: int) -> str:
    since = f", since {finding.since}" if finding.since else ""
    head = f"{finding.severity.value.upper()}  {finding.subject}  ({finding.rule}{since}{_rises(finding)})"
    return "\n".join(
        [
            _lines(head, columns),
            _lines(finding.summary, columns, "  "),
            _lines(finding.cause, columns, "  why  ", " " * 7),
            _labelled("seen", map(_evidence, finding.evidence), columns),
            *_consequences(finding.consequences, columns),
            _steps(finding.steps, columns),
            f"  more {runbook_command(finding.rule)}",
        ]
    )


def _rises(finding: FindingReport) -> str:
    """Return what a finding becomes if it lasts, and how long it has been seen."""
    if finding.if_it_lasts is None:
        return ""
    seen = "" if finding.seen_seconds is None else f", seen for {duration(finding.seen_seconds)}"
    after = finding.facts.get("warning_after_seconds")
    # A finding of one look may have the thresholds of a fault that has lasted, which it has passed already.
    known = isinstance(after, int | float) and after > (finding.seen_seconds or 0.0)
    longer = f" for {duration(after)}" if known else ""
    return f"{seen}; {finding.if_it_lasts.value} if it lasts{longer}"


_MOST_CONSEQUENCES = 5


def _consequences(consequences: Sequence[FindingReport], columns: int) -> list[str]:
    if not consequences:
        return []
    items = [f"{each.subject}: {each.rule}" for each in consequences[:_MOST_CONSEQUENCES]]
    if len(consequences) > _MOST_CONSEQUENCES:
        items.append(f"{len(consequences) - _MOST_CONSEQUENCES} more; --json lists them")
    return [_labelled("so", items, columns)]


def _information(finding: FindingReport, columns: int) -> str:
    return _lines(f"info  {finding.rule}: {finding.summary} [{runbook_command(finding.rule)}]", columns, rest=" " * 6)


def _evidence(evidence: EvidenceReport) -> str:
    expected = f" (expected {evidence.expected})" if evidence.expected else ""
    return f"{evidence.what}: {evidence.value}{expected} [{evidence.source}]"


_MOST_RULES = 4


def _inconclusive(gaps: Sequence[InconclusiveReport], columns: int, *, everything: bool) -> list[str]:
    """Return the inconclusive rules grouped by reason, because one missing permission affects many rules."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for gap in gaps:
        if everything or not gap.permanent:
            by_reason.setdefault((gap.because, gap.needs), []).append(gap.rule)
    blocks = []
    for (because, needs), rules in by_reason.items():
        names = sorted(set(rules))
        more = f" and {len(names) - _MOST_RULES} more" if len(names) > _MOST_RULES else ""
        head = f"INCONCLUSIVE  {', '.join(names[:_MOST_RULES])}{more}: {because}"
        blocks.append(f"{_lines(head, columns)}\n{_lines(needs, columns, '  do   ', ' ' * 7)}")
    return blocks


def _suppressed(items: Sequence[SuppressedReport], columns: int, *, everything: bool) -> list[str]:
    if not items:
        return []
    if not everything:
        return [_lines(f"{len(items)} suppressed as harmless; --all shows why", columns)]
    return ["\n".join(_lines(f"suppressed  {it.subject}  ({it.rule}): {it.because}", columns) for it in items)]


def _outcome(outcome: ProbeOutcome) -> str:
    counts = ", ".join(f"{number} {name}" for name, number in outcome.outcomes.items() if number)
    confirm = outcome.confirm
    times = ""
    if confirm.p50 is not None and confirm.p99 is not None:
        times = f"; confirm p50 {1000 * confirm.p50:.1f} ms, p99 {1000 * confirm.p99:.1f} ms"
    reason = f" ({outcome.reason})" if outcome.reason else ""
    doubt = f"; doubtful: {outcome.doubtful}" if outcome.doubtful else ""
    name = f"{outcome.probe} {outcome.stream} {outcome.state.value}{reason}"
    return f"{name}: {counts or _step_times(outcome) or 'nothing measured yet'}{times}{doubt}"


def _step_times(outcome: ProbeOutcome) -> str:
    """Return the median duration and the failures of each step."""
    items = []
    for name, step in outcome.steps.items():
        median = f" {1000 * step.seconds.p50:.1f} ms" if step.seconds.p50 is not None else ""
        failed = f" {step.failures} of {step.attempts} failed ({step.reason})" if step.failures else ""
        if median or failed:
            items.append(f"{name}{median}{failed}")
    return ", ".join(items)


def _labelled(label: str, items: Iterable[str], columns: int) -> str:
    """Return a list of items with its label in the left margin."""
    lines: list[str] = []
    for item in items:
        lead = f"  {label:<4} - " if not lines else " " * 7 + "- "
        lines.append(_lines(item, columns, lead, " " * 9))
    return "\n".join(lines)


def _steps(steps: Sequence[Step], columns: int) -> str:
    """Return the steps to take. Each command is on its own line and never wrapped, so that it can be copied."""
    lines: list[str] = []
    for step in steps:
        lead = "  do   - " if not lines else " " * 7 + "- "
        lines.append(_lines(step.lead, columns, lead, " " * 9))
        if step.command:
            lines.append(f"{' ' * 11}{step.command}")
    return "\n".join(lines)


def _lines(text: str, columns: int, lead: str = "", rest: str = "  ") -> str:
    return "\n".join(
        wrap(text, columns, initial_indent=lead, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False)
    )
