"""A stretch of time that a page is narrowed to (`?from=`, `&to=`, in UTC), and the way back from it."""

from collections.abc import Iterable
from datetime import UTC, datetime

import pandas as pd
import streamlit as st

from dashboard.format import readable
from dashboard.format.timezones import Zone
from dashboard.frames import confirm_frames
from dashboard.frames.minute_frames import Axis
from dashboard.ui import elements
from dashboard.ui.layout import keep, wanted


def asked(now: datetime) -> tuple[datetime, datetime] | None:
    """The stretch of the address, in whole minutes; None where it tells none, or one that is none.

    What lies after `now` is left out; of more than a day its first day is shown.
    """
    first, last = (readable.parse_iso(wanted(name)) for name in ("from", "to"))
    if first is None or last is None or not first < last or first >= now.timestamp() - 60:
        return None
    start = datetime.fromtimestamp(first, UTC)
    end = min(datetime.fromtimestamp(min(last, now.timestamp()), UTC), start + confirm_frames.LONGEST)
    return confirm_frames.widened(start, end)


def narrow(start: datetime, end: datetime) -> None:
    """Show this stretch only, from the next run on, which begins at once."""
    keep("from", f"{start.astimezone(UTC):%Y-%m-%dT%H:%M}")
    keep("to", f"{end.astimezone(UTC):%Y-%m-%dT%H:%M}")
    elements.forget_selections()
    st.rerun(scope="app")


def _leave() -> None:
    keep("from", None)
    keep("to", None)
    elements.forget_selections()


def heading(title: str, start: datetime, end: datetime, zone: Zone) -> None:
    """The title, the stretch in words, and the one click that leads back."""
    st.subheader(title, anchor=False)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        length = readable.span((end - start).total_seconds())
        st.markdown(f"Only **{readable.between(start, end, zone)}** ({length})", width="content")
        st.button("Back to the whole range", icon=":material/arrow_back:", key="leave-stretch", on_click=_leave)


def missing(shaped: Iterable[pd.DataFrame], axis: Axis, zone: Zone) -> None:
    """Say which part of a stretch no history holds; `shaped` have a column `minute`."""
    told = [frame["minute"].min() for frame in shaped if len(frame)]
    if not told:
        st.caption(
            f"No history of {readable.between(axis.start, axis.end, zone)}: nobody looked, or its minutes are "
            "gone. The page History tells of hours and days."
        )
    elif min(told) - axis.start >= confirm_frames.SHORTEST:
        st.caption(f"History of this stretch begins with {readable.minute(min(told), zone)} {zone.name}.")
