"""Picture of a `FlowGraph`: boxes with whole names, in columns, connected by curves as wide as their rate. Pure."""

import re
from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from dashboard.charts import minute_charts, theme
from dashboard.format.escape import plot_text, visible
from dashboard.frames import flow_graph
from dashboard.frames.flow_graph import FlowBox, FlowGraph, FlowLine

MIN_WIDTH, COLUMN_WIDTH = 960, 240
"""Pixels of a picture and of a column in one with few; the style sheet makes a narrower page scroll the picture."""

COLOURS = {
    flow_graph.PUBLISHER: "#2F81C7",
    flow_graph.EXCHANGE: theme.OTHER,
    # No colour of a severity: a healthy queue must not look like a warning.
    flow_graph.QUEUE: "#6F5FC0",
    flow_graph.CONSUMER: "#009E73",
    flow_graph.DEAD: minute_charts.REDELIVERED,
    flow_graph.REST: theme.OTHER,
}

SICK = "#D3302F"
"""Of a queue with a finding: without it, all queues look the same."""

_FONT, _LINE, _PADDING, _SPACE = 12, 15, 5, 12
"""Pixels: size of the text, height of a line, space within and between boxes."""
_LETTER = 6.6
"""Mean width of a letter in pixels."""
_BOX = 0.39
"""Half the width of a box; columns are 1 apart."""
_SCREEN = 600
"""Pixels of a picture that are in sight without scrolling."""
_MOST_LINES = 5
_PIECES = re.compile(r"[^ ./:_-]*[ ./:_-]?")


def flow_chart(graph: FlowGraph) -> go.Figure:
    """Draw the graph; the custom data of a box that a click opens is `[virtual host, queue]`."""
    texts = {key: _text(box, len(graph.columns)) for key, box in graph.boxes.items()}
    heights = {key: len(lines) * _LINE + 2 * _PADDING for key, lines in texts.items()}
    tallest = max((_height(column, heights) for column in graph.columns), default=40.0)
    places = _places(graph.columns, heights, tallest)
    figure = go.Figure()
    most = max((line.rate for line in graph.lines if line.rate is not None and line.rate == line.rate), default=0.0)
    figure.update_layout(
        shapes=[
            *(_curve(line, places, most) for line in graph.lines),
            *(_box(box, places[key], heights[key]) for key, box in graph.boxes.items()),
        ],
        annotations=[
            {
                "x": places[key][0],
                "y": places[key][1],
                "text": "<br>".join(lines),
                "showarrow": False,
                "font": {"size": _FONT},
                "align": "center",
            }
            for key, lines in texts.items()
        ],
    )
    _add_points(figure, graph, places)
    theme.fixed_size(figure, int(tallest) + 12, top=4)
    figure.update_layout(margin={"l": 0, "r": 0, "b": 0, "t": 4}, hovermode="closest", hoverdistance=60)
    figure.update_xaxes(visible=False, range=[-0.5, len(graph.columns) - 0.5])
    figure.update_yaxes(visible=False, range=[tallest + 4, -4])
    return figure


def _text(box: FlowBox, columns: int) -> list[str]:
    """The lines of a box: its whole name, broken where needed, and its details."""
    letters = int(min(MIN_WIDTH / max(columns, 1), COLUMN_WIDTH) * 2 * _BOX / _LETTER)
    title = _wrapped(box.title, letters)
    return [*(f"<b>{line}</b>" for line in title), *(line for text in box.details for line in _wrapped(text, letters))]


def _wrapped(text: str, letters: int) -> list[str]:
    """A text in lines, broken after a space, dot, dash, slash or colon where possible; a very long one is shortened."""
    shown = visible(text)
    if len(shown) > letters * _MOST_LINES:
        shown = f"{shown[: letters * _MOST_LINES // 2 - 1]}…{shown[-(letters * _MOST_LINES // 2 - 1) :]}"
    lines = [""]
    for piece in _PIECES.findall(shown):
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > letters:
            lines.append("")
        rest = lines[-1] + piece
        while len(rest.rstrip()) > letters:
            lines[-1], rest = rest[:letters], rest[letters:]
            lines.append("")
        lines[-1] = rest
    return [plot_text(line.strip(), letters + 1) for line in lines if line.strip()]


def _height(column: Sequence[str], heights: Mapping[str, float]) -> float:
    return sum(heights[key] + _SPACE for key in column)


def _places(
    columns: Sequence[Sequence[str]], heights: Mapping[str, float], tallest: float
) -> dict[str, tuple[float, float]]:
    """The centre of every box: the number of its column, and pixels from the top."""
    places = {}
    for number, column in enumerate(columns):
        # In a picture taller than a screen, a short column stays on the first screen.
        top = max(0.0, min(tallest, _SCREEN) - _height(column, heights)) / 2 + _SPACE / 2
        for key in column:
            places[key] = (float(number), top + heights[key] / 2)
            top += heights[key] + _SPACE
    return places


def _box(box: FlowBox, place: tuple[float, float], height: float) -> dict[str, object]:
    colour, (x, y) = SICK if box.sick else COLOURS[box.kind], place
    return {
        "type": "rect",
        "x0": x - _BOX,
        "x1": x + _BOX,
        "y0": y - height / 2,
        "y1": y + height / 2,
        "line": {"color": colour, "width": 3 if box.sick else 2 if box.kind == flow_graph.QUEUE else 1.2},
        "fillcolor": theme.faint(colour, 0.12),
        "layer": "below",
    }


def _curve(line: FlowLine, places: Mapping[str, tuple[float, float]], most: float) -> dict[str, object]:
    (x0, y0), (x1, y1) = places[line.start], places[line.end]
    forward = x1 > x0
    if forward:
        start, end = x0 + _BOX, x1 - _BOX
        path = f"M {start},{y0} C {(start + end) / 2},{y0} {(start + end) / 2},{y1} {end},{y1}"
    else:
        # In the same column, or back: around the right side of the boxes.
        start, end, out = x0 + _BOX, x1 + _BOX, max(x0, x1) + 0.47
        path = f"M {start},{y0} C {out},{y0} {out},{y1} {end},{y1}"
    known = line.rate is not None and line.rate == line.rate
    width = 1.0 + 6.0 * (line.rate / most) ** 0.5 if known and most > 0 and line.rate else 1.0
    return {
        "type": "path",
        "path": path,
        "line": {
            "color": COLOURS[flow_graph.DEAD] if line.dead else "#5B8DB8" if known and line.rate else theme.OTHER,
            "width": width,
            "dash": "dash" if line.dead else "solid" if line.sure else "dot",
        },
        "opacity": 0.75,
        "layer": "below",
    }


def _add_points(figure: go.Figure, graph: FlowGraph, places: Mapping[str, tuple[float, float]]) -> None:
    """Add an invisible mark to each box, for its whole text on hover and for clicks."""
    boxes = list(graph.boxes.items())
    figure.add_trace(
        go.Scatter(
            x=[places[key][0] for key, _ in boxes],
            y=[places[key][1] for key, _ in boxes],
            mode="markers",
            marker={"size": 30, "opacity": 0.0, "symbol": "square"},
            customdata=[list(box.opens) if box.opens else ["", ""] for _, box in boxes],
            text=[_hover(key, box, graph) for key, box in boxes],
            hovertemplate="%{text}<extra></extra>",
            showlegend=False,
        )
    )


def _hover(key: str, box: FlowBox, graph: FlowGraph) -> str:
    """The whole box and its lines; a click is announced."""
    lines = [f"<b>{plot_text(box.title, 400)}</b> ({box.kind})", *(plot_text(text, 200) for text in box.details)]
    mine = [it for it in graph.lines if key in {it.start, it.end}]
    for it in mine[:8]:
        other = graph.boxes[it.end if it.start == key else it.start].title
        rate = "" if it.dead else f" {flow_graph.per_second(it.rate)}"
        words = plot_text(f"{'to' if it.start == key else 'from'} {other}{rate} {it.text}", 120)
        lines.append(words)
    if len(mine) > 8:
        lines.append(f"and {len(mine) - 8} more")
    if box.opens:
        lines.append("click to open the queue")
    return "<br>".join(lines)
