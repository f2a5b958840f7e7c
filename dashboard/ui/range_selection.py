"""Selected time range of a page (`?from=` and `&to=`, in UTC), and the button that clears it."""

from collections.abc import Iterable
from datetime import UTC, datetime

import pandas as pd
import streamlit as st

from dashboard.format import readable
from dashboard.format.timezones import Zone
from dashboard.frames import confirm_frames
from dashboard.frames.minute_frames import Axis
from dashboard.ui import elements
from dashboard.ui.layout import get_param, set_param


def from_address(now: datetime) -> tuple[datetime, datetime] | None:
    """The time range of the address in whole minutes; None if it has none, or an invalid one.

    The range ends at `now` at the latest; a range over 1 day is truncated to its first day.
    """
    first, last = (readable.parse_iso(get_param(name)) for name in ("from", "to"))
    if first is None or last is None or not first < last or first >= now.timestamp() - 60:
        return None
    start = datetime.fromtimestamp(first, UTC)
    end = min(datetime.fromtimestamp(min(last, now.timestamp()), UTC), start + confirm_frames.MAX_RANGE)
    return confirm_frames.widen(start, end)


def select_range(start: datetime, end: datetime) -> None:
    """Set the time range in the address, and rerun the page."""
    set_param("from", f"{start.astimezone(UTC):%Y-%m-%dT%H:%M}")
    set_param("to", f"{end.astimezone(UTC):%Y-%m-%dT%H:%M}")
    elements.forget_selections()
    st.rerun(scope="app")


def _clear() -> None:
    set_param("from", None)
    set_param("to", None)
    elements.forget_selections()


def heading(title: str, start: datetime, end: datetime, zone: Zone) -> None:
    """A heading with the selected time range and a button that clears it."""
    st.subheader(title, anchor=False)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        length = readable.duration((end - start).total_seconds())
        st.markdown(f"Only **{readable.between(start, end, zone)}** ({length})", width="content")
        st.button("Back to the whole range", icon=":material/arrow_back:", key="clear-range", on_click=_clear)


def missing_history(frames: Iterable[pd.DataFrame], axis: Axis, zone: Zone) -> None:
    """Say which part of the range has no data; all frames have a column `minute`."""
    first_minutes = [frame["minute"].min() for frame in frames if len(frame)]
    if not first_minutes:
        st.caption(
            f"No data for {readable.between(axis.start, axis.end, zone)}: the exporter was not running, or the minute "
            "data has expired. The page History has hourly and daily data."
        )
    elif min(first_minutes) - axis.start >= confirm_frames.MIN_RANGE:
        st.caption(f"Data for this range starts at {readable.minute(min(first_minutes), zone)} {zone.name}.")
