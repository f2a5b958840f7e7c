"""A table of consumers, each with what it holds as a bar to its ceiling."""

import pandas as pd
import streamlit as st

from dashboard.format import readable
from dashboard.format.escape import visible

FORMAT = {
    "queue": st.column_config.TextColumn("Queue", width="medium"),
    "client": st.column_config.TextColumn("Client", help="the name that its connection gave itself", width="medium"),
    "host": st.column_config.TextColumn("Host", width="small"),
    "held": st.column_config.ProgressColumn(
        "Unacked of prefetch",
        help="at 100 % the broker sends it nothing more until it acknowledges",
        format="%.0f %%",
        min_value=0,
        max_value=100,
        width="medium",
    ),
    "unacked": st.column_config.NumberColumn("Unacked", help="of its channel", format="localized"),
    "prefetch": st.column_config.NumberColumn("Prefetch", help="0 is no limit", format="localized"),
    "beside": st.column_config.NumberColumn("On channel", help="consumers on its channel, who share what is unacked"),
    "acks": st.column_config.TextColumn("Acks", width="small"),
    "hazard": st.column_config.TextColumn("Mind", width="small"),
    "active": st.column_config.TextColumn("Active", width="small"),
    "user": st.column_config.TextColumn("User", width="small"),
    "channel": st.column_config.TextColumn("Channel", width="large"),
    "tag": st.column_config.TextColumn("Tag", width="medium"),
}
_TEXTS = ("vhost", "queue", "tag", "client", "host", "user", "node", "channel")


def show(rows: pd.DataFrame, key: str, *, shown: int = 200, without: tuple[str, ...] = ()) -> None:
    """The first rows; foreign words with their hidden characters made visible."""
    first = rows.head(shown)
    first = first.assign(**{name: first[name].map(visible) for name in _TEXTS})
    st.dataframe(
        first,
        column_order=[name for name in FORMAT if name not in without],
        column_config=FORMAT,
        hide_index=True,
        placeholder=readable.ABSENT,
        height=min(36 * (len(first) + 1) + 2, 600),
        key=key,
    )
    if len(rows) > len(first):
        st.caption(f"The fullest {len(first)} of {len(rows):,}.")
