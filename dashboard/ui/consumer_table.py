"""Table of consumers, with the share of its prefetch that each has unacknowledged as a bar."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from ackscope import format as fmt
from dashboard.charts import sparkline
from dashboard.data.model import Point
from dashboard.format.escape import visible
from dashboard.frames import consumer_findings, consumer_rows
from dashboard.ui import cache, elements
from dashboard.ui.layout import PageContext

_SPAN = "in its last readings, at most 3 min, from zero; blank is a gap"
_COLUMNS = {
    "finding": st.column_config.TextColumn(
        "Finding", help="rules with a finding about the consumer, its client or its queue", width=136
    ),
    "queue": st.column_config.TextColumn("Queue", width="medium"),
    "client": st.column_config.TextColumn("Client", help="connection name given by the client", width="medium"),
    "host": st.column_config.TextColumn("Host", width="small"),
    "held": st.column_config.ProgressColumn(
        "Unacked of prefetch",
        help="at 100 % the broker delivers nothing more until the consumer acknowledges",
        format="%.0f %%",
        min_value=0,
        max_value=100,
        width="medium",
    ),
    "limits": st.column_config.MultiselectColumn(
        "At its limit",
        help="no acks: it acknowledged nothing in the last 30 s; a full consumer that acknowledges is only busy",
        options=[consumer_rows.STANDS_STILL, consumer_rows.FULL],
        color=["red", "blue"],
        width=104,
    ),
    "unacked_trend": st.column_config.ImageColumn(
        "Recently", help=f"unacknowledged messages of its channel {_SPAN}", width=84
    ),
    "acked_trend": st.column_config.ImageColumn(
        "Acked /s",
        help=f"messages acknowledged per second on its channel {_SPAN}",
        width=84,
    ),
    "unacked": st.column_config.NumberColumn(
        "Unacked", help="unacknowledged messages of its channel; AMQP 1.0: not settled", format="localized"
    ),
    "prefetch": st.column_config.NumberColumn("Prefetch", help="0: no limit", format="localized"),
    "protocol": st.column_config.TextColumn("Protocol", help="empty: AMQP 0-9-1", width="small"),
    "credit": st.column_config.NumberColumn(
        "Credit",
        help="how many more messages (AMQP 1.0) or chunks of messages (stream) it asked for; at 0 it gets none",
        format="localized",
    ),
    "lag": st.column_config.NumberColumn(
        "Lag", help="stream: messages from its offset to the end of the stream", format="localized"
    ),
    "beside": st.column_config.NumberColumn("On channel", help="consumers on its channel, which share its unacked"),
    "acks": st.column_config.TextColumn("Acks", width="small"),
    "hazard": st.column_config.TextColumn("Risk", width="small"),
    "active": st.column_config.TextColumn("Active", width="small"),
    "user": st.column_config.TextColumn("User", width="small"),
    "channel": st.column_config.TextColumn("Channel", width="large"),
    "tag": st.column_config.TextColumn("Tag", width="medium"),
}
_LEAST_SECONDS = 15.0
_FOREIGN_TEXT = ("finding", "vhost", "queue", "tag", "client", "host", "user", "node", "channel")


def load(context: PageContext) -> pd.DataFrame | None:
    """The consumers of the cluster, those with findings first; None, and the reason on the page, if they are unknown.

    Columns: those of `consumer_rows` and `consumer_findings`.
    """
    cluster, url = context.cluster or "", context.settings.exporter
    consumers = cache.object_list(url, cluster, "consumers", consumer_rows.CONSUMER_COLUMNS)
    if not consumers.known:
        elements.plain("no-consumers", f"No consumer data: {consumers.problem or 'not polled yet'}.")
        return None
    channels = cache.object_list(url, cluster, "channels", consumer_rows.CHANNEL_COLUMNS)
    connections = cache.object_list(url, cluster, "connections", consumer_rows.CONNECTION_COLUMNS)
    rows = consumer_rows.consumer_rows(consumers.rows, channels.rows, connections.rows)
    return consumer_findings.with_findings(rows, cache.current_findings(url, cluster))


def show(
    context: PageContext, rows: pd.DataFrame, key: str, *, shown: int = 200, without: tuple[str, ...] = ()
) -> None:
    """The first rows, with hidden characters made visible; `key` is unique on the page."""
    first = rows.head(shown)
    first = first.assign(
        **_trends(context, first),
        **{name: first[name].map(visible) for name in _FOREIGN_TEXT},
        limits=pd.Series([[it] if it else [] for it in first["limit"]], index=first.index, dtype=object),
    )
    # Columns of other protocols only where a client speaks them.
    without += () if first["protocol"].any() else ("protocol", "credit")
    without += () if first["lag"].notna().any() else ("lag",)
    st.dataframe(
        first,
        column_order=elements.without_empty([it for it in _COLUMNS if it not in without], first, "finding", "hazard"),
        column_config=_COLUMNS,
        hide_index=True,
        placeholder=fmt.ABSENT,
        height=min(36 * (len(first) + 1) + 2, 600),
        key=key,
    )
    if len(rows) > len(first):
        st.caption(f"Showing {len(first)} of {len(rows):,}, findings first, then the highest share of prefetch.")


def _cell(line: Sequence[Point]) -> str:
    """A sparkline as long as the readings: the exporter holds a few of a channel, which may span seconds or minutes."""
    oldest = line[0][0] if line else 0.0
    return sparkline.cell(line, min(max(oldest, _LEAST_SECONDS), sparkline.CHANNEL_SECONDS))


def _trends(context: PageContext, rows: pd.DataFrame) -> dict[str, pd.Series]:
    """Sparklines of the channels of these consumers."""
    names = tuple(dict.fromkeys(name for name in rows["channel"] if name))
    report = cache.recent_series(
        context.settings.exporter, context.cluster or "", "channels", names, ("unacked", "ack")
    )
    known = {it.name: {line.name: line.line for line in it.lines} for it in report.objects}
    return {
        f"{column}_trend": pd.Series(
            [_cell(known.get(name, {}).get(line, ())) for name in rows["channel"]],
            index=rows.index,
            dtype=object,
        )
        for column, line in (("unacked", "unacked"), ("acked", "ack"))
    }
