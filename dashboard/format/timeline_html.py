"""The timeline as one self-contained HTML file for a post-mortem: no script, no request, readable in print. Pure.

Every text that comes from outside is escaped, and a content security policy forbids scripts and requests besides.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from ackscope import format as fmt
from ackscope.findings import Severity
from dashboard.format import readable
from dashboard.format.escape import html_text, shortened
from dashboard.format.timezones import UTC, Zone
from dashboard.frames.gantt_rows import GanttBar, GanttRow, groups
from dashboard.frames.timeline_entries import NOTE, SHIFT, TimelineEntry

_WIDTH, _LEFT, _RIGHT = 1000, 6, 994
_ROW, _HEADING, _MARKS, _AXIS = 38, 28, 34, 26
# Seconds between two marks of the time axis: the first that gives at most `_TICKS` marks.
_TICKS, _STEPS = 8, (60, 300, 600, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 24 * 3600, 7 * 24 * 3600)
_LONGEST = 120
_COLOURS = {Severity.CRITICAL.value: "#c62828", Severity.WARNING.value: "#b26a00", Severity.INFO.value: "#1f6fb5"}
_OTHER, _NOTE = "#6b7682", "#ad1457"
# Everything that the file shows is in it; nothing may be loaded or run.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; --ink: #1c2126; --soft: #59636e; --rule: #d5dae0; --paper: #fff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ebee; --soft: #a7b0ba; --rule: #3a424b; --paper: #14171b; } }
@media print { :root { --ink: #000; --soft: #333; --rule: #bbb; --paper: #fff; color-scheme: light; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1100px; padding: 24px 16px 48px; background: var(--paper); color: var(--ink);
  font: 15px/1.45 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: 0 0 4px; } h2 { font-size: 1.15rem; margin: 32px 0 8px; }
p { margin: 4px 0; } .soft { color: var(--soft); }
.chart { overflow-x: auto; margin: 0; } svg { width: 100%; min-width: 640px; height: auto; display: block; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; } svg .soft { fill: var(--soft); }
svg .group { font-weight: 700; font-size: 13px; } svg .rule { stroke: var(--rule); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: 14px; }
th, td { text-align: left; vertical-align: top; padding: 5px 10px 5px 0; border-bottom: 1px solid var(--rule); }
th { color: var(--soft); font-weight: 600; white-space: nowrap; }
td.time { white-space: nowrap; font-variant-numeric: tabular-nums; }
.tag { border-left: 5px solid; padding-left: 6px; font-weight: 600; white-space: nowrap; }
@media screen and (max-width: 640px) { thead { display: none; } tr { display: block; padding: 8px 0;
  border-bottom: 1px solid var(--rule); } td { display: block; border: 0; padding: 1px 0; }
  td[data-name]::before { content: attr(data-name); color: var(--soft); } }
@media print { body { max-width: none; padding: 0; font-size: 10.5pt; } .chart, .scroll { overflow: visible; }
  svg { min-width: 0; } tr, figure { break-inside: avoid; } h2 { break-after: avoid; } table { font-size: 9.5pt;
  } .tag, svg rect, svg polygon { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""


@dataclass(frozen=True, slots=True)
class TimelineReport:
    """What the file is about.

    Attributes:
        cluster: name of the cluster.
        start, end: the time range, seconds since 1970.
        rows: findings, in the order of the chart.
        entries: all entries of the timeline, earliest first.
        zone: zone of all times.
        remark: what the reader should know about the data; "" if nothing.
    """

    cluster: str
    start: float
    end: float
    rows: Sequence[GanttRow]
    entries: Sequence[TimelineEntry]
    zone: Zone = UTC
    remark: str = ""


def timeline_html(report: TimelineReport) -> str:
    """The whole file."""
    title = f"Timeline of {html_text(report.cluster)}"
    notes = [entry for entry in report.entries if entry.kind == NOTE]
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{title}</h1>",
        f"<p>{html_text(readable.between(report.start, report.end, report.zone))}</p>",
        f"<p>{html_text(_summary(report))}</p>",
    ]
    if report.remark:
        parts.append(f'<p class="soft">{html_text(report.remark)}</p>')
    if report.rows or report.entries:
        parts += ["<h2>Findings over time</h2>", '<figure class="chart">', _chart(report), "</figure>"]
    if report.rows:
        parts += ["<h2>Findings</h2>", _findings(report)]
    if notes:
        parts += ["<h2>Notes</h2>", _table(["Time", "Who", "Note"], (_entry_cells(report, it) for it in notes))]
    parts += ["<h2>Everything in order of time</h2>", _everything(report)]
    parts.append(f'<p class="soft">All times are in {html_text(report.zone.name)}. Made by ackscope.</p></body></html>')
    return "\n".join(parts) + "\n"


def _summary(report: TimelineReport) -> str:
    bars = [bar for row in report.rows for bar in row.bars]
    counts = [f"{sum(bar.severity == name for bar in bars)} {name}" for name in _COLOURS]
    lasting = sum(bar.lasts for bar in bars)
    known = f"{fmt.plural(len(bars), 'finding')} ({', '.join(counts)}), {lasting} of them not over"
    shifts, notes = (sum(entry.kind == kind for entry in report.entries) for kind in (SHIFT, NOTE))
    return f"{known}; {fmt.plural(shifts, 'change')} of a level; {fmt.plural(notes, 'note')}."


def _findings(report: TimelineReport) -> str:
    def cells(row: GanttRow, bar: GanttBar) -> list[str]:
        began = ("before " if bar.earlier else "") + _moment(report, bar.began)
        ended = "not over" if bar.lasts else "not seen" if bar.end_unknown else _moment(report, bar.ended)
        length = fmt.ABSENT if bar.end_unknown else fmt.duration(bar.seconds)
        tag = f'<span class="tag" style="border-color:{_colour(bar.severity)}">{html_text(bar.severity)}</span>'
        what = f"<b>{html_text(row.rule)}</b><br>{html_text(row.who)}" + (
            f"<br>{html_text(bar.summary)}" if bar.summary else ""
        )
        return [tag, what, html_text(began), html_text(ended), html_text(length)]

    rows = (cells(row, bar) for row in report.rows for bar in row.bars)
    return _table(["Severity", "Finding", "Began", "Ended", "Lasted"], rows, times=(2, 3, 4))


def _everything(report: TimelineReport) -> str:
    if not report.entries:
        return "<p>No entries in this range.</p>"

    def cells(entry: TimelineEntry) -> list[str]:
        time, who, what = _entry_cells(report, entry)
        kind = f"{entry.severity} {entry.kind}".strip()
        return [
            time,
            f'<span class="tag" style="border-color:{_mark_colour(entry)}">{html_text(kind)}</span>',
            who,
            what,
        ]

    return _table(["Time", "", "Who", "What"], map(cells, report.entries))


def _entry_cells(report: TimelineReport, entry: TimelineEntry) -> list[str]:
    return [html_text(_moment(report, entry.at)), html_text(entry.who), _lines(entry.what)]


def _table(head: Sequence[str], rows: Iterable[list[str]], times: Sequence[int] = (0,)) -> str:
    """A table; the cells are HTML."""
    names = "".join(f"<th>{html_text(name)}</th>" for name in head)
    body = "\n".join(
        "<tr>"
        + "".join(
            f'<td class="time" data-name="{html_text(head[place])}: ">{cell}</td>'
            if place in times
            else f"<td>{cell}</td>"
            for place, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table></div>'


def _chart(report: TimelineReport) -> str:
    """The Gantt chart as SVG; positions are in pixels of a picture that is 1,000 wide."""
    shapes: list[str] = []
    y = float(_AXIS)
    for kind, name in ((NOTE, "notes"), (SHIFT, "changes of a level")):
        marks = [entry for entry in report.entries if entry.kind == kind]
        if marks:
            shapes.append(_label(f"{name} ({len(marks)})", y + 11, "soft"))
            shapes += [_mark(report, entry, y + 23) for entry in marks]
            y += _MARKS
    for name, rows in groups(report.rows):
        shapes.append(_label(name, y + 18, "group"))
        y += _HEADING
        for row in rows:
            shapes.append(_label(shortened(row.label, _LONGEST), y + 12))
            shapes += [_bar(report, row, bar, y + 18) for bar in row.bars]
            y += _ROW
    words = f"{fmt.plural(len(report.rows), 'row')} of findings over time; the tables below have the same data."
    return (
        f'<svg viewBox="0 0 {_WIDTH} {y + 6:.0f}" role="img" aria-label="{html_text(words)}">'
        + "".join([*_ticks(report, y), *shapes])
        + "</svg>"
    )


def _ticks(report: TimelineReport, height: float) -> Iterator[str]:
    days = report.zone.local(report.start).date() != report.zone.local(report.end).date()
    length = report.end - report.start
    step = next((it for it in _STEPS if length / it <= _TICKS), _STEPS[-1])
    # Round times of the zone; its offset is that of the start.
    offset = (report.zone.local(report.start).utcoffset() or timedelta()).total_seconds()
    at = -(-(report.start + offset) // step) * step - offset
    while at <= report.end:
        x = _place(report, at)
        anchor = "start" if x < _LEFT + 40 else "end" if x > _RIGHT - 40 else "middle"
        words = f"{report.zone.local(at):%m-%d %H:%M}" if days else f"{report.zone.local(at):%H:%M}"
        yield f'<line class="rule" x1="{x:.1f}" x2="{x:.1f}" y1="{_AXIS - 6}" y2="{height:.0f}"/>'
        yield f'<text class="soft" x="{x:.1f}" y="13" text-anchor="{anchor}">{html_text(words)}</text>'
        at += step


def _bar(report: TimelineReport, row: GanttRow, bar: GanttBar, y: float) -> str:
    x = _place(report, bar.began)
    width = max(_place(report, bar.ended) - x, 4.0)
    hollow = f'fill="none" stroke="{_colour(bar.severity)}" stroke-width="2"'
    fill = hollow if bar.end_unknown else f'fill="{_colour(bar.severity)}"'
    state = "lasts" if bar.lasts else "end not seen" if bar.end_unknown else fmt.duration(bar.seconds)
    words = f"{row.label}, {_moment(report, bar.began)}, {state}. {bar.summary}"
    return (
        f"<g><title>{html_text(words)}</title>"
        f'<rect x="{x:.1f}" y="{y:.0f}" width="{width:.1f}" height="13" rx="2" {fill}/></g>'
    )


def _mark(report: TimelineReport, entry: TimelineEntry, y: float) -> str:
    x = _place(report, entry.at)
    points = f"{x:.1f},{y - 7:.0f} {x + 6:.1f},{y:.0f} {x:.1f},{y + 7:.0f} {x - 6:.1f},{y:.0f}"
    words = f"{_moment(report, entry.at)} {entry.who}: {entry.what}"
    fill = f'fill="{_NOTE}"' if entry.kind == NOTE else f'fill="none" stroke="{_OTHER}" stroke-width="2"'
    return f'<g><title>{html_text(words)}</title><polygon points="{points}" {fill}/></g>'


def _label(text: str, y: float, kind: str = "") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text{style} x="{_LEFT}" y="{y:.0f}">{html_text(text)}</text>'


def _place(report: TimelineReport, at: float) -> float:
    share = (at - report.start) / max(report.end - report.start, 1.0)
    return _LEFT + (_RIGHT - _LEFT) * min(max(share, 0.0), 1.0)


def _colour(severity: str) -> str:
    return _COLOURS.get(severity, _OTHER)


def _mark_colour(entry: TimelineEntry) -> str:
    return _NOTE if entry.kind == NOTE else _colour(entry.severity)


def _moment(report: TimelineReport, at: float) -> str:
    return readable.minute(at, report.zone, "%Y-%m-%d %H:%M:%S")


def _lines(text: str) -> str:
    return "<br>".join(html_text(line) for line in text.splitlines())
