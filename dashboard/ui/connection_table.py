"""Table of connections: who is connected, since when, and what it does."""

import pandas as pd
import streamlit as st

from ackscope import format as fmt
from ackscope.clock import SystemClock
from dashboard.format import readable
from dashboard.format.escape import visible
from dashboard.frames import connection_rows
from dashboard.ui import cache, elements
from dashboard.ui.layout import PageContext

_SHOWN = 100
_RATE = "messages per second on all its channels"
_COLUMNS = {
    "client": st.column_config.TextColumn("Client", help="connection name given by the client", width="medium"),
    "host": st.column_config.TextColumn("Host", width=96),
    "user": st.column_config.TextColumn("User", width=76),
    "vhost": st.column_config.TextColumn("Vhost", width=76),
    "published": st.column_config.NumberColumn("In /s", help=f"published {_RATE}", format="%.1f", width=64),
    "delivered": st.column_config.NumberColumn("Out /s", help=f"delivered {_RATE}", format="%.1f", width=64),
    "acked": st.column_config.NumberColumn("Acked /s", help=f"acknowledged {_RATE}", format="%.1f", width=72),
    "unacked": st.column_config.NumberColumn("Unacked", format="localized", width=72),
    "channels": st.column_config.NumberColumn("Channels", format="localized", width=76),
    "state": st.column_config.TextColumn(
        "State", help="blocked: it published while an alarm lasts; flow: the broker slows it down", width=72
    ),
    "connected": st.column_config.TextColumn("Connected", width=96),
    "protocol": st.column_config.TextColumn("Protocol", width=96),
    "client_product": st.column_config.TextColumn("Library", width=96),
    "heartbeat": st.column_config.NumberColumn("Heartbeat, s", help="0 is off", format="%.0f", width=90),
    "node": st.column_config.TextColumn("Node", width="medium"),
    "name": st.column_config.TextColumn("Connection", help="as in rabbitmqctl list_connections", width="large"),
}
_FOREIGN_TEXT = ("client", "host", "user", "vhost", "state", "protocol", "client_product", "node", "name")


def show(context: PageContext, text: str) -> None:
    """The connections in whose names `text` occurs, also those that only publish; nothing while none are known."""
    url, cluster = context.settings.exporter, context.cluster or ""
    listed = cache.object_list(url, cluster, "connections", connection_rows.COLUMNS)
    if not listed.known:
        return
    channels = cache.object_list(url, cluster, "channels", connection_rows.CHANNEL_COLUMNS)
    found = connection_rows.connection_rows(listed.rows, channels.rows, text)
    st.subheader(fmt.plural(len(found), "connection").capitalize(), anchor=False)
    if found.empty:
        return
    now = SystemClock().now().wall
    first = found.head(_SHOWN)
    ages = [fmt.ABSENT if pd.isna(at) else f"{readable.duration(max(0.0, now - at))} ago" for at in first["since"]]
    st.dataframe(
        first.assign(connected=ages, **{name: first[name].map(visible) for name in _FOREIGN_TEXT}),
        column_order=list(_COLUMNS),
        column_config=_COLUMNS,
        hide_index=True,
        placeholder=fmt.ABSENT,
        height=min(36 * (len(first) + 1) + 2, 400),
        key="connections",
    )
    if len(found) > len(first):
        st.caption(f"Showing the busiest {len(first)} of {len(found):,}.")
    elements.download("connections", lambda: found)
