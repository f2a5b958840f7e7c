from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from plotly.subplots import make_subplots

from dashboard.charts import minute_charts, node_charts, theme
from dashboard.frames import minute_frames
from dashboard.frames.minute_frames import RANGES, Axis
from dashboard.frames.node_history import RESOURCES
from tests.dashboard.rollup_files import burst_row, latency_row, outcome_row, queue_row

NOW = datetime(2026, 3, 1, 8, 41, 37, tzinfo=UTC)
AXIS = Axis.until(NOW, RANGES["15m"])
PRESENT = (14, 13, 12, 6, 5, 4, 3, 2, 1)
GAPS = [(15, 14), (11, 6)]


def at(back: int) -> datetime:
    """A minute before the end of the axis."""
    return AXIS.end - timedelta(minutes=back)


def shaded(figure) -> list[tuple[datetime, datetime]]:
    """The gaps that a figure shades in its first row."""
    return [(shape.x0, shape.x1) for shape in figure.layout.shapes if shape.xref == "x"]


EXPECTED_SHADE = [(at(15), at(14)), (at(11), at(6))]


def test_latency_is_in_milliseconds_on_an_axis_that_says_it_is_logarithmic() -> None:
    """Three lines of one colour with different dashes."""
    rows = pd.DataFrame([latency_row(at(back), [0.002, 0.2]) for back in PRESENT])
    figure = minute_charts.latency(minute_frames.latency(rows, AXIS, "quorum"), AXIS, "quorum", (0.001, 0.3))
    by_name = {trace.name: trace for trace in figure.data}

    assert ("log", "log scale") == (figure.layout.yaxis.type, figure.layout.yaxis.title.text)
    assert {"max", "p99", "p50"} == set(by_name)
    assert 1 == len({trace.line.color for trace in figure.data})
    assert 3 == len({trace.line.dash for trace in figure.data})


def test_latency_shows_the_exact_maximum_in_milliseconds() -> None:
    """Seconds in the files, milliseconds on the axis."""
    rows = pd.DataFrame([latency_row(at(3), [0.002, 0.2])])
    figure = minute_charts.latency(minute_frames.latency(rows, AXIS, "classic"), AXIS, "classic", None)
    most = next(trace for trace in figure.data if trace.name == "max")

    assert pytest.approx(200.0) == np.nanmax(most.y)


def test_a_gap_breaks_the_line_and_is_shaded() -> None:
    """Missing data is neither zero nor a straight line."""
    rows = pd.DataFrame([latency_row(at(back), [0.002]) for back in PRESENT])
    figure = minute_charts.latency(minute_frames.latency(rows, AXIS, "classic"), AXIS, "classic", None)

    assert all(trace.connectgaps is False for trace in figure.data)
    assert 15 - len(PRESENT) == int(np.isnan(figure.data[0].y).sum())
    assert EXPECTED_SHADE == shaded(figure)
    assert ["no data"] == [note.text for note in figure.layout.annotations]


def test_bad_outcomes_have_their_own_axis() -> None:
    """Three lost messages must be visible next to 1200 acked ones; bars start at zero."""
    rows = pd.DataFrame([outcome_row(at(back), acked=1197, lost=3) for back in PRESENT])
    figure = minute_charts.outcomes(minute_frames.outcomes(rows, AXIS), AXIS)
    axes = {trace.name: trace.yaxis for trace in figure.data}

    assert {"acked": "y", "nacked": "y2", "returned": "y2", "undecided": "y2", "lost": "y2"} == axes
    assert ["acked", "lost"] == [trace.name for trace in figure.data if trace.showlegend]
    assert ("tozero", "tozero") == (figure.layout.yaxis.rangemode, figure.layout.yaxis2.rangemode)
    assert EXPECTED_SHADE == shaded(figure)


def test_outcomes_differ_by_pattern_too() -> None:
    """Not everybody can distinguish colours."""
    assert len(minute_charts.OUTCOMES) == len({pattern for _, pattern in minute_charts.OUTCOMES.values()})


def test_one_colour_has_one_meaning() -> None:
    """No colour is used twice, except for grey: acked and unknown types."""
    colours = [
        *minute_charts.QUEUE_TYPES.values(),
        *(colour for colour, _ in minute_charts.OUTCOMES.values()),
        minute_charts.READY,
        minute_charts.UNACKED,
        minute_charts.REDELIVERED,
    ]

    assert len(colours) == len(set(colours))


def test_batches_have_a_mean_line_and_marks_for_the_largest() -> None:
    """Each queue type in its colour."""
    rows = pd.DataFrame([burst_row(at(2), bursts=10, messages=40, messages_max=17)])
    figure = minute_charts.batches(
        {"quorum": minute_frames.batches(rows.assign(stream="quorum"), AXIS, "quorum")}, AXIS
    )

    assert [4.0, 17.0] == [float(np.nanmax(trace.y)) for trace in figure.data]
    assert {minute_charts.QUEUE_TYPES["quorum"]} == {figure.data[0].line.color, figure.data[1].marker.line.color}


def test_depth_has_a_row_per_queue_with_its_name_as_text() -> None:
    """Markup in a name is shown as text."""
    rows = pd.DataFrame([queue_row(at(2), "<a href='x'>q</a>", 900), queue_row(at(2), "small", 1)])
    figure = minute_charts.depth(minute_frames.depth(rows, AXIS), AXIS)

    assert ["&lt;a href='x'&gt;q&lt;/a&gt;  (vhost /)", "small  (vhost /)"] == [
        note.text for note in figure.layout.annotations if note.text != "no data"
    ]
    assert {"y", "y2"} == {trace.yaxis for trace in figure.data}


def test_redeliveries_start_at_zero_and_say_what_a_bar_is() -> None:
    """Also when there were none."""
    rows = pd.DataFrame({"minute": [at(2)], "redelivered": [0.0]})
    figure = minute_charts.redelivered(minute_frames.redelivered(rows, AXIS), AXIS)

    assert ("messages per minute", (0, 1)) == (figure.layout.yaxis.title.text, figure.layout.yaxis.range)


def test_shapes_over_the_height_are_in_every_chart_of_a_figure() -> None:
    """In each row between its own axes; those that are there stay."""
    rows = make_subplots(rows=2, cols=1, shared_xaxes=True)
    theme.add_upright(rows, [theme.upright(at(2), at(3))])
    theme.add_upright(rows, [theme.upright(at(5), at(6))])

    assert [("x", "y domain"), ("x2", "y2 domain")] * 2 == [(it.xref, it.yref) for it in rows.layout.shapes]
    assert {(0, 1)} == {(it.y0, it.y1) for it in rows.layout.shapes}


def test_resources_of_a_node_stand_side_by_side_each_with_its_own_gap() -> None:
    """The layout is cached; a second node gets its own titles and gaps."""
    memory, disk, *_ = RESOURCES
    times = AXIS.points + timedelta(seconds=30)

    def drawn(limit: float) -> go.Figure:
        whole = pd.Series(2.0, index=times)
        gap = whole.copy()
        gap.iloc[4:12] = float("nan")
        limits = pd.Series(limit, index=times)
        return node_charts.node_history({memory: (whole, limits), disk: (gap, limits)}, AXIS)

    first, second = drawn(4.0), drawn(64.0)

    assert ["Memory used, GiB (limit 4)", "Memory used, GiB (limit 64, not to scale)"] == [
        it.layout.annotations[0].text for it in (first, second)
    ]
    assert {("x2", "y2 domain")} == {(it.xref, it.yref) for it in first.layout.shapes}
    assert [AXIS.start, AXIS.end] == list(first.layout.xaxis2.range)
    assert {"x", "x2"} == {trace.xaxis for trace in first.data}
