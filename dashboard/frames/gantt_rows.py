"""Findings as bars from their beginning to their end, grouped by what they are about: rows of a Gantt chart. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ackscope import format as fmt
from ackscope.findings import Severity
from ackscope.ranking import FindingEpisode, ObjectKey, display_name
from ackscope.reports import FindingReport
from dashboard.format.readable import parse_iso

_GROUPS = {
    "queue": "Queues",
    "exchange": "Exchanges",
    "vhost": "Virtual hosts",
    "connection": "Clients",
    "channel": "Clients",
    "consumer": "Clients",
    "node": "Nodes and cluster",
    "cluster": "Nodes and cluster",
    "probe": "Probes",
}
# More objects of one rule share a row.
_APART = 3
_NAMED = 3
_SEVERITIES = [severity.value for severity in Severity]


@dataclass(frozen=True, slots=True)
class GanttBar:
    """One finding, cut to the shown time range. Times are in seconds since 1970.

    Attributes:
        began, ended: both ends of the bar; `ended` is the end of the range if the finding lasts.
        lasts: it was still active when it was last reported.
        end_unknown: it is over, but nobody saw its end; the bar is only its beginning.
        earlier: it began before the bar does.
        summary: who is affected, and how.
    """

    began: float
    ended: float
    severity: str
    summary: str
    lasts: bool = False
    end_unknown: bool = False
    earlier: bool = False

    @property
    def seconds(self) -> float:
        """Length of the bar."""
        return self.ended - self.began


@dataclass(frozen=True, slots=True)
class GanttRow:
    """All findings of one rule about one object; the same rule may have fired several times.

    Attributes:
        group: heading that the row is under.
        severity: the highest of its bars.
        who: the object in words, or how many there are.
        kind: kind of the object.
        bars: in order of time; at least one.
    """

    group: str
    severity: str
    rule: str
    who: str
    bars: tuple[GanttBar, ...]
    kind: str = ""

    @property
    def heading(self) -> str:
        """Severity and rule, how often, and whether it lasts: nothing is said by colour alone."""
        notes = [f"{len(self.bars)} times"] if len(self.bars) > 1 else []
        notes += ["lasts"] if any(bar.lasts for bar in self.bars) else []
        return f"{self.severity.upper()} {self.rule}" + (f" ({', '.join(notes)})" if notes else "")

    @property
    def label(self) -> str:
        """The heading and the object."""
        return f"{self.heading}: {self.who}"


def gantt_rows(
    episodes: Iterable[FindingEpisode], findings: Iterable[FindingReport], start: float, end: float
) -> tuple[GanttRow, ...]:
    """Rows from `start` to `end`, seconds since 1970; groups and rows by worst severity, then the earliest first.

    Args:
        episodes: findings of the history.
        findings: current findings, which may not be in the history yet.
        start: beginning of the range.
        end: end of the range.
    """
    found: dict[tuple[str, ObjectKey], list[GanttBar]] = {}
    lasting = set()
    for it in episodes:
        known_end = it.ended if it.ended is not None else end if it.lasts else it.began
        if it.lasts:
            lasting.add((it.rule, it.subject))
        if it.began > end or known_end < start:
            continue
        bar = GanttBar(
            began=max(it.began, start),
            ended=min(known_end, end),
            severity=it.severity,
            summary=it.summary,
            lasts=it.ended is None and it.lasts,
            end_unknown=it.ended is None and not it.lasts,
            earlier=it.found or it.began < start,
        )
        found.setdefault((it.rule, it.subject), []).append(bar)
    for finding in findings:
        subject = (finding.subject.kind, finding.subject.vhost or "", finding.subject.name)
        since = parse_iso(finding.since)
        if since is None or since > end or (finding.rule, subject) in lasting:
            continue
        bar = GanttBar(
            max(since, start), end, finding.severity.value, finding.summary, lasts=True, earlier=since < start
        )
        found.setdefault((finding.rule, subject), []).append(bar)
    rows = [
        GanttRow(
            group=_GROUPS.get(subject[0], "Others"),
            severity=min((bar.severity for bar in bars), key=_rank),
            rule=rule,
            who=display_name(*subject),
            kind=subject[0].strip() or "object",
            bars=tuple(sorted(bars, key=lambda bar: bar.began)),
        )
        for (rule, subject), bars in found.items()
    ]
    order: dict[str, tuple[int, float]] = {}
    for row in rows:
        mine = (_rank(row.severity), row.bars[0].began)
        order[row.group] = min(order.get(row.group, mine), mine)
    return tuple(
        sorted(
            rows,
            key=lambda row: (order[row.group], row.group, _rank(row.severity), row.bars[0].began, row.rule, row.who),
        )
    )


def condensed(rows: Sequence[GanttRow]) -> tuple[GanttRow, ...]:
    """The rows with one for all objects of a rule if they are many; each stays where the first of its objects was."""
    together: dict[tuple[str, str], list[GanttRow]] = {}
    for row in rows:
        together.setdefault((row.rule, row.kind), []).append(row)
    found = []
    for row in rows:
        mine = together[row.rule, row.kind]
        if len(mine) <= _APART:
            found.append(row)
        elif row is mine[0]:
            found.append(_together(mine))
    return tuple(found)


def worst(rows: Sequence[GanttRow], most: int) -> tuple[GanttRow, ...]:
    """The most severe rows, at most `most`, in the order of all rows."""
    chosen = sorted(range(len(rows)), key=lambda number: _rank(rows[number].severity))[:most]
    return tuple(rows[number] for number in sorted(chosen))


def _together(rows: Sequence[GanttRow]) -> GanttRow:
    """One row whose bars are the times in which at least one of the objects had the finding."""
    bars = sorted(((bar, row.who) for row in rows for bar in row.bars), key=lambda it: it[0].began)
    spans: list[list[tuple[GanttBar, str]]] = []
    until = 0.0
    for bar, who in bars:
        if spans and bar.began <= until:
            spans[-1].append((bar, who))
        else:
            spans.append([(bar, who)])
        until = max(until, bar.ended)
    return GanttRow(
        group=rows[0].group,
        severity=min((row.severity for row in rows), key=_rank),
        rule=rows[0].rule,
        who=fmt.plural(len(rows), rows[0].kind),
        kind=rows[0].kind,
        bars=tuple(_span(rows[0].kind, span) for span in spans),
    )


def _span(kind: str, span: Sequence[tuple[GanttBar, str]]) -> GanttBar:
    names = list(dict.fromkeys(who for _, who in span))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return GanttBar(
        began=span[0][0].began,
        ended=max(bar.ended for bar, _ in span),
        severity=min((bar.severity for bar, _ in span), key=_rank),
        summary=f"{fmt.plural(len(names), kind)}: {', '.join(names[:_NAMED])}{more}",
        lasts=any(bar.lasts for bar, _ in span),
        end_unknown=all(bar.end_unknown for bar, _ in span),
        earlier=span[0][0].earlier,
    )


def groups(rows: Sequence[GanttRow]) -> list[tuple[str, list[GanttRow]]]:
    """The rows by group, in their order."""
    found: dict[str, list[GanttRow]] = {}
    for row in rows:
        found.setdefault(row.group, []).append(row)
    return list(found.items())


def _rank(severity: str) -> int:
    return _SEVERITIES.index(severity) if severity in _SEVERITIES else len(_SEVERITIES)
