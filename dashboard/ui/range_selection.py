"""Time ranges selected on a chart (`?from=` and `&to=`, in UTC), and what to say if they have no data."""

from collections.abc import Iterable
from datetime import datetime

import pandas as pd
import streamlit as st

from dashboard.format import readable
from dashboard.format.timezones import Zone
from dashboard.frames.minute_frames import MIN_RANGE, Axis
from dashboard.ui import elements
from dashboard.ui.layout import fixed_range, set_fixed_range


def from_address(now: datetime) -> tuple[datetime, datetime] | None:
    """The fixed time range of the address in whole minutes; None if the page's range is live."""
    found = fixed_range(now)
    return None if found is None else found.at(now)


def select_range(start: datetime, end: datetime) -> None:
    """Set the time range in the address, and rerun the page."""
    set_fixed_range(start, end)
    elements.forget_selections()
    st.rerun(scope="app")


def missing_history(frames: Iterable[pd.DataFrame], axis: Axis, zone: Zone) -> None:
    """Say which part of the range has no data; all frames have a column `minute`."""
    first_minutes = [frame["minute"].min() for frame in frames if len(frame)]
    if not first_minutes:
        st.caption(
            f"No data for {readable.between(axis.start, axis.end, zone)}: the exporter was not running, or the minute "
            "data has expired. The page History has hourly and daily data."
        )
    elif min(first_minutes) - axis.start >= MIN_RANGE:
        st.caption(f"Data for this range starts at {readable.minute(min(first_minutes), zone)} {zone.name}.")
