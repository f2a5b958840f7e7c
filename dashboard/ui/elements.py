"""Page elements: badges, plain text, tables, charts and download buttons. Foreign text is shown literally."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

import pandas as pd
import streamlit as st
from plotly.graph_objects import Figure

from ackscope.clock import SystemClock
from ackscope.findings import Severity
from dashboard.format import export
from dashboard.format.escape import html_text, literal
from dashboard.frames.minute_frames import Range
from dashboard.settings import PageSettings
from dashboard.ui import layout

# Options of a chart: no zoom, and only the button that saves it as an image.
_CHART_CONFIG: dict[str, Any] = {
    "displayModeBar": "hover",
    "modeBarButtonsToRemove": ["zoom2d", "pan2d", "select2d", "autoScale2d"],
    "scrollZoom": False,
    "doubleClick": False,
}
_SELECTION_ROUND = "selection-round"

Colour = Literal["red", "orange", "blue", "green", "gray"]


class BadgeStyle(NamedTuple):
    """How a state is shown: a word, a colour and an icon, never a colour alone."""

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
    """The selection on a chart: boxes with their edges (`x`, `y`), or points with their `customdata`."""

    boxes: tuple[Mapping[str, Any], ...] = ()
    points: tuple[Mapping[str, Any], ...] = ()


def badge(style: BadgeStyle, text: str | None = None) -> None:
    """Show a state; `text` must not contain foreign text."""
    st.badge(text or style.word, icon=style.icon, color=style.colour)


def plain(key: str, text: str) -> None:
    """Small grey text that may contain foreign text; `key` is unique on the page."""
    with st.container(key=f"plain-{key}"):
        st.caption(literal(text))


def table(key: str, rows: Sequence[Mapping[str, str]], *, saved: bool = False) -> None:
    """A table of foreign text whose cells wrap.

    Args:
        key: unique on the page.
        rows: at least one; all have the same columns.
        saved: add a button that downloads the rows as CSV.
    """
    with st.container(key=f"plain-{key}"):
        cells = {name: [literal(row[name]) if row[name] else "" for row in rows] for name in rows[0]}
        st.table(cells, border="horizontal", hide_index=True)
    if saved:
        download(key, lambda: pd.DataFrame(rows))


def without_empty(order: Sequence[str], rows: pd.DataFrame, *names: str) -> list[str]:
    """The columns of a table, without those of these names that have no text in any row: a phone shows few columns."""
    return [name for name in order if name not in names or rows[name].astype(bool).any()]


def chart(
    figure: Figure,
    key: str,
    alt: str,
    at: datetime | None = None,
    *,
    select: Literal["box", "points"] | None = None,
) -> ChartSelection:
    """A chart that can be saved as a PNG, and the selection on it.

    Args:
        figure: the plotly figure.
        key: unique on the page; part of the file name, so no foreign text.
        alt: text alternative.
        at: end of the time that it shows, for the file name; None: now.
        select: what can be selected; a selection reruns the page. `forget_selections` clears all selections.
    """
    file_name = export.file_name(layout.current_page(), key, at or SystemClock().now().utc)
    config = {**_CHART_CONFIG, "toImageButtonOptions": {"format": "png", "filename": file_name, "scale": 2}}
    with st.container(key=f"plain-chart-{key}"):
        if select is None:
            st.plotly_chart(figure, config=config, key=f"chart-{key}", alt=alt)
            return ChartSelection()
        figure.update_layout(dragmode="select" if select == "box" else False, selectdirection="h")
        state = st.plotly_chart(
            figure,
            config=config,
            key=f"chart-{key}-{st.session_state.get(_SELECTION_ROUND, 0)}",
            alt=alt,
            on_select="rerun",
            selection_mode=select,
        )
    selection = state["selection"]
    return ChartSelection(tuple(selection["box"]), tuple(selection["points"]) if select == "points" else ())


def titled_chart(
    title: str, meaning: str, figure: Figure, key: str, at: datetime, *, select: Literal["box", "points"] | None = None
) -> ChartSelection:
    """A chart with a title (Markdown) and an explanation behind a question mark; other arguments as in `chart`."""
    with st.container(key=f"plain-title-{key}", gap="small"):
        st.markdown(f"**{title}**", help=meaning)
        return chart(figure, key, f"{title}. {meaning}", at, select=select)


def forget_selections() -> None:
    """Clear all selections on charts, by giving the charts new keys from the next run on."""
    st.session_state[_SELECTION_ROUND] = st.session_state.get(_SELECTION_ROUND, 0) + 1


def no_history(settings: PageSettings, span: Range, *, has_history: bool) -> None:
    """Say that the range has no history; if the cluster has none at all, how to start recording it."""
    if has_history:
        st.caption(f"No complete minute of history {span.words(layout.current_zone())}.")
        return
    how_to_record(
        "no-history",
        f"No history of this cluster in {settings.rollups} yet. To write it, one minute at a time, run the pipeline:",
        settings,
    )


def how_to_record(key: str, text: str, settings: PageSettings) -> None:
    """Show `text`, and the command of the pipeline; without `--rollups`, how to get a history instead of `text`."""
    if not settings.has_rollups:
        text = (
            "No history: this page was started without --rollups. Set landing.directory of the exporter, run the "
            "pipeline, and start the page with --rollups and the folder that the pipeline writes to:"
        )
    plain(key, text)
    rollups = settings.rollups if settings.has_rollups else "DIR"
    st.code(f"ackscope pipeline stream --landing DIR --rollups {rollups}", language=None)


def command(text: str) -> None:
    """A command with a button that copies it.

    Streamlit's own block of code first loads a parser of 200 programming languages: half a second in which the browser
    draws nothing else. `COPY_COMMANDS` has to be on the page.
    """
    st.html(
        f'<div class="command"><pre><code>{html_text(text)}</code></pre>'
        '<button type="button" aria-live="polite">Copy</button></div>'
    )


def download(key: str, rows: Callable[[], pd.DataFrame], label: str = "Save these rows (CSV)") -> None:
    """A button that downloads rows as CSV; they are computed when it is pressed. `key` is unique on the page."""
    st.download_button(
        label,
        lambda: export.csv(rows()),
        file_name=f"{export.file_name(layout.current_page(), key, SystemClock().now().utc)}.csv",
        mime="text/csv",
        key=f"save-{key}",
        on_click="ignore",
        type="tertiary",
        icon=":material/download:",
    )
