"""The Gantt chart of the page "Timeline": a bar for each finding, marks for notes and changes of a level. Pure."""

from collections.abc import Sequence
from datetime import datetime

import plotly.graph_objects as go

from ackscope import format as fmt
from ackscope.findings import Severity
from dashboard.charts import theme
from dashboard.format.escape import plot_text
from dashboard.frames.gantt_rows import GanttRow, groups
from dashboard.frames.minute_frames import Axis
from dashboard.frames.timeline_entries import NOTE, SHIFT, TimelineEntry

COLOURS = {Severity.CRITICAL.value: "#D3302F", Severity.WARNING.value: "#E08A00", Severity.INFO.value: "#2F81C7"}
NOTE_COLOUR = "#C2185B"
_LINE, _BAR, _HEADING, _MARKS, _FRAME = 16, 24, 26, 34, 80
# Characters of a label that a phone shows; longer names are shortened in the middle.
_LONGEST = 54


def gantt(rows: Sequence[GanttRow], entries: Sequence[TimelineEntry], axis: Axis) -> go.Figure:
    """One row for each rule and object, under the heading of its group; the label is above the bar.

    Args:
        rows: result of `gantt_rows`.
        entries: entries of the timeline: notes and changes become marks above the rows.
        axis: time axis.
    """
    figure = go.Figure()
    # Vertical positions are in pixels from the top, so that text and bars have one size in every chart.
    y = _add_marks(figure, entries, axis)
    for name, mine in groups(rows):
        _add_text(figure, f"<b>{plot_text(name)}</b>", axis, y + 14)
        y += _HEADING
        for row in mine:
            # A phone has room for one of the two on a line.
            lines = [row.label] if len(row.label) <= _LONGEST else [row.heading, row.who]
            for line in lines:
                _add_text(figure, plot_text(line, _LONGEST), axis, y + 9)
                y += _LINE
            _add_bars(figure, row, axis, y + 9)
            y += _BAR
    theme.set_time_axis(theme.fixed_size(figure, y + _FRAME), axis)
    figure.update_layout(barmode="overlay", hovermode="closest", showlegend=True)
    figure.update_xaxes(type="date", nticks=6, showgrid=True, gridcolor=theme.GRID)
    figure.update_yaxes(range=[max(y, 1), 0], visible=False)
    _add_legend(figure, rows)
    return figure


def _add_text(figure: go.Figure, text: str, axis: Axis, y: int) -> None:
    figure.add_annotation(x=axis.start, y=y, text=text, xanchor="left", yanchor="middle", showarrow=False, align="left")


def _add_marks(figure: go.Figure, entries: Sequence[TimelineEntry], axis: Axis) -> int:
    """Notes and changes of a level, each kind on a line of its own; returns the height that they take."""
    y = 0
    for kind, name, symbol, colour in (
        (NOTE, "notes", "diamond", NOTE_COLOUR),
        (SHIFT, "changes of a level", "triangle-up-open", theme.OTHER),
    ):
        marks = [entry for entry in entries if entry.kind == kind]
        if not marks:
            continue
        _add_text(figure, f"{name} ({len(marks)})", axis, y + 9)
        figure.add_trace(
            go.Scatter(
                x=[_local(entry.at, axis) for entry in marks],
                y=[y + 24] * len(marks),
                text=[plot_text(f"{entry.who}: {entry.what}", 160) for entry in marks],
                name=name,
                mode="markers",
                marker={"symbol": symbol, "size": 12, "color": colour, "line": {"width": 2, "color": colour}},
                hovertemplate=f"%{{x|%m-%d %H:%M:%S}} {axis.zone}<br>%{{text}}<extra></extra>",
                showlegend=False,
            )
        )
        if kind == NOTE:
            for entry in marks:
                figure.add_vline(x=_local(entry.at, axis), line={"color": colour, "dash": "dot", "width": 1})
        y += _MARKS
    return y


def _add_bars(figure: go.Figure, row: GanttRow, axis: Axis, y: int) -> None:
    """Bars at least 0.4 % of the range wide; one whose end nobody saw is only a mark."""
    least = (axis.end - axis.start).total_seconds() * 0.004
    for bar in row.bars:
        colour = COLOURS.get(bar.severity, theme.OTHER)
        length = "end not seen" if bar.end_unknown else fmt.duration(bar.seconds)
        state = ", lasts" if bar.lasts else ""
        before = ", began earlier" if bar.earlier else ""
        figure.add_trace(
            go.Bar(
                x=[max(bar.seconds, least) * 1000],
                base=[_local(bar.began, axis)],
                y=[y],
                width=12,
                orientation="h",
                marker={
                    "color": colour,
                    "line": {"width": 1, "color": colour},
                    "pattern": {"shape": "/" if bar.end_unknown else "", "fgcolor": "#FFFFFF"},
                },
                customdata=[[plot_text(f"{row.rule}: {bar.summary}", 160), f"{length}{state}{before}"]],
                hovertemplate=f"%{{base|%m-%d %H:%M:%S}} {axis.zone}, %{{customdata[1]}}"
                "<br>%{customdata[0]}<extra></extra>",
                showlegend=False,
            )
        )


def _add_legend(figure: go.Figure, rows: Sequence[GanttRow]) -> None:
    present = {bar.severity for row in rows for bar in row.bars}
    for severity, colour in COLOURS.items():
        if severity in present:
            marker = {"symbol": "square", "size": 12, "color": colour}
            figure.add_trace(go.Scatter(x=[None], y=[None], mode="markers", name=severity, marker=marker))


def _local(at: float, axis: Axis) -> datetime:
    return datetime.fromtimestamp(at, axis.start.tzinfo)
