"""The verdict as text for a tired person: the worst first, short lines, commands to copy. Pure."""

import re
from collections.abc import Iterable, Sequence
from textwrap import wrap

from ackscope.findings import CannotTell, Evidence, Finding, Verdict
from ackscope.records import ProbeOutcome

NARROWEST, WIDEST = 40, 100

_COMMAND = re.compile(r"^(?P<why>.*?:) (?P<command>(?:rabbitmq|curl |ackscope |sudo |systemctl |df ).*)$")


def report(verdict: Verdict, broker: str | None, outcomes: Sequence[ProbeOutcome], width: int) -> str:
    """The whole text.

    Args:
        verdict: what diagnosis answered.
        broker: version of RabbitMQ, where it is known.
        outcomes: what probes lived through, where any ran.
        width: columns of the terminal; lines are wrapped to it within reason, commands never.
    """
    columns = max(NARROWEST, min(width, WIDEST))
    name = f"RabbitMQ {broker}" if broker else "RabbitMQ of unknown version"
    blocks = [_lines(f"{verdict.cluster}: {name}, {verdict.at}", columns)]
    blocks += [_finding(finding, columns) for finding in verdict.findings]
    if not verdict.findings:
        checked = ", ".join(verdict.checked) or "nothing"
        blocks.append(_lines(f"nothing wrong found; checked: {checked}", columns))
    blocks += [_gap(gap, columns) for gap in verdict.cannot_tell]
    blocks += [_lines(f"probe: {_outcome(outcome)}", columns) for outcome in outcomes]
    return "\n\n".join(blocks) + "\n"


def _finding(finding: Finding, columns: int) -> str:
    since = f", since {finding.since}" if finding.since else ""
    head = f"{finding.severity.value.upper()}  {finding.subject}  ({finding.rule}{since})"
    return "\n".join(
        [
            _lines(head, columns),
            _lines(finding.summary, columns, "  "),
            _lines(finding.cause, columns, "  why  ", " " * 7),
            _labelled("seen", map(_evidence, finding.evidence), columns),
            _labelled("do", finding.next_steps, columns),
            f"  more {finding.runbook}",
        ]
    )


def _evidence(evidence: Evidence) -> str:
    expected = f" (expected {evidence.expected})" if evidence.expected else ""
    return f"{evidence.what}: {evidence.value}{expected} [{evidence.source}]"


def _gap(gap: CannotTell, columns: int) -> str:
    head = f"CANNOT TELL  {gap.rule}: {gap.because}"
    return f"{_lines(head, columns)}\n{_lines(gap.needs, columns, '  do   ', ' ' * 7)}"


def _outcome(outcome: ProbeOutcome) -> str:
    counts = ", ".join(f"{number} {name}" for name, number in outcome.outcomes.items() if number)
    confirm = outcome.confirm
    times = ""
    if confirm.p50 is not None and confirm.p99 is not None:
        times = f"; confirm p50 {1000 * confirm.p50:.1f} ms, p99 {1000 * confirm.p99:.1f} ms"
    reason = f" ({outcome.reason})" if outcome.reason else ""
    doubt = f"; doubtful: {outcome.doubtful}" if outcome.doubtful else ""
    name = f"{outcome.probe} {outcome.stream} {outcome.state.value}{reason}"
    return f"{name}: {counts or 'no message settled'}{times}{doubt}"


def _labelled(label: str, items: Iterable[str], columns: int) -> str:
    """Items under a label in the margin; a command stands on a line of its own, whole, to be copied."""
    lines: list[str] = []
    for item in items:
        found = _COMMAND.match(item)
        text, command = (found["why"], found["command"]) if found else (item, None)
        lead = f"  {label:<4} - " if not lines else " " * 7 + "- "
        lines.append(_lines(text, columns, lead, " " * 9))
        if command:
            lines.append(f"{' ' * 11}{command}")
    return "\n".join(lines)


def _lines(text: str, columns: int, lead: str = "", rest: str = "  ") -> str:
    return "\n".join(
        wrap(text, columns, initial_indent=lead, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False)
    )
