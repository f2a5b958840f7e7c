"""Small pieces that several views share: how a severity looks, and foreign text set as plain text."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

import pandas as pd
import streamlit as st
from plotly.graph_objects import Figure

from ackscope.clock import SystemClock
from ackscope.findings import Severity
from dashboard.format import export
from dashboard.format.escape import literal
from dashboard.ui import layout

STILL: dict[str, Any] = {"displayModeBar": False, "scrollZoom": False, "doubleClick": False}
"""Options of a chart that is looked at and not worked with."""
_TURN = "selection-turn"
_TAKEN = {**STILL, "displayModeBar": "hover", "modeBarButtonsToRemove": ["zoom2d", "pan2d", "select2d", "autoScale2d"]}

Colour = Literal["red", "orange", "blue", "green", "gray"]


class BadgeStyle(NamedTuple):
    """A state as a word, a colour and a shape: never as a colour alone."""

    word: str
    colour: Colour
    icon: str


SEVERITIES = {
    Severity.CRITICAL: BadgeStyle("CRITICAL", "red", ":material/error:"),
    Severity.WARNING: BadgeStyle("WARNING", "orange", ":material/warning:"),
    Severity.INFO: BadgeStyle("INFO", "blue", ":material/info:"),
}
GOOD = BadgeStyle("GOOD", "green", ":material/check_circle:")
UNKNOWN = BadgeStyle("UNKNOWN", "gray", ":material/help:")


class ChartSelection(NamedTuple):
    """What was selected on a chart: boxes with their edges (`x`, `y`), or points with their `customdata`."""

    boxes: tuple[Mapping[str, Any], ...] = ()
    points: tuple[Mapping[str, Any], ...] = ()


def badge(look: BadgeStyle, text: str | None = None) -> None:
    """Show a state; `text` holds our own words and numbers only."""
    st.badge(text or look.word, icon=look.icon, color=look.colour)


def plain(key: str, text: str) -> None:
    """Small grey text that may hold foreign words, shown literally; `key` is unique on the page."""
    with st.container(key=f"plain-{key}"):
        st.caption(literal(text))


def table(key: str, rows: Sequence[Mapping[str, str]], *, saved: bool = False) -> None:
    """A table of foreign words that wraps, shown literally; `key` is unique on the page.

    Where it can be `saved`, a button below it does so: the rows as they are, with the same words.
    """
    with st.container(key=f"plain-{key}"):
        cells = {name: [literal(row[name]) if row[name] else "" for row in rows] for name in rows[0]}
        st.table(cells, border="horizontal", hide_index=True)
    if saved:
        save(key, lambda: pd.DataFrame(rows))


def taken(what: str, at: datetime | None = None) -> dict[str, Any]:
    """Options of a chart that can be saved as a picture, in the browser, under a name of page, chart and time.

    Args:
        what: of the chart, unique on the page; our own words only.
        at: the moment that it shows; the present where it is None.
    """
    name = export.file_name(layout.here(), what, at or SystemClock().now().utc)
    return {**_TAKEN, "toImageButtonOptions": {"format": "png", "filename": name, "scale": 2}}


def chart(
    figure: Figure,
    key: str,
    alt: str,
    at: datetime | None = None,
    *,
    select: Literal["box", "points"] | None = None,
) -> ChartSelection:
    """A figure that can be saved as a picture, and what was selected on it.

    Args:
        figure: as of one of the modules of charts.
        key: unique on the page.
        alt: what it shows.
        at: the moment that it shows; the present where it is None.
        select: what can be selected on it; the page runs again when it is, and nothing is selected on a chart that
            was not there before `forget_selections`.
    """
    with st.container(key=f"plain-chart-{key}"):
        if select is None:
            st.plotly_chart(figure, config=taken(key, at), key=f"chart-{key}", alt=alt)
            return ChartSelection()
        figure.update_layout(dragmode="select" if select == "box" else False, selectdirection="h")
        state = st.plotly_chart(
            figure,
            config=taken(key, at),
            key=f"chart-{key}-{st.session_state.get(_TURN, 0)}",
            alt=alt,
            on_select="rerun",
            selection_mode=select,
        )
    found = state["selection"]
    return ChartSelection(tuple(found["box"]), tuple(found["points"]) if select == "points" else ())


def forget_selections() -> None:
    """What was selected on the charts was followed: from the next run on they are new ones, with nothing selected."""
    st.session_state[_TURN] = st.session_state.get(_TURN, 0) + 1


def save(key: str, rows: Callable[[], pd.DataFrame], label: str = "Save these rows (CSV)") -> None:
    """A button that saves rows as CSV; they are made when it is pressed. `key` is unique on the page."""
    st.download_button(
        label,
        lambda: export.csv(rows()),
        file_name=f"{export.file_name(layout.here(), key, SystemClock().now().utc)}.csv",
        mime="text/csv",
        key=f"save-{key}",
        on_click="ignore",
        type="tertiary",
        icon=":material/download:",
    )
