"""The page "Nodes": how close each node is to the limits at which it blocks publishers or fails."""

from collections.abc import Hashable, Mapping
from datetime import timedelta
from typing import Any

import pandas as pd
import streamlit as st

from ackscope.clock import SystemClock
from dashboard.charts import node_charts
from dashboard.format import readable
from dashboard.format.escape import literal
from dashboard.frames import node_history
from dashboard.frames.minute_frames import Axis, Range
from dashboard.ui import cache, elements, vital_tiles
from dashboard.ui.layout import PageContext, range_heading

_COLUMNS = (
    "name",
    "running",
    "rabbitmq_version",
    "uptime_seconds",
    "fd_used",
    "fd_total",
    "sockets_used",
    "sockets_total",
    "proc_used",
    "proc_total",
    "run_queue",
    "processors",
    "partitions",
)
_MAX_NODES = 9
_RESOURCES = {
    "File descriptors": ("fd_used", "fd_total", "new connections and files fail"),
    "Sockets": ("sockets_used", "sockets_total", "new connections are refused"),
    "Erlang processes": ("proc_used", "proc_total", "new connections, channels and queues fail, or the node crashes"),
}


def render(context: PageContext) -> None:
    """Totals and bars of the cluster, then a box per node."""
    if context.cluster is None:
        st.caption("No cluster known yet.")
        return
    _now(context)
    _over_time(context, range_heading("Nodes over time, against their limits"))


@st.fragment(run_every="30s")
def _over_time(context: PageContext, span: Range) -> None:
    """Memory, disk, run queue, descriptors and processes of each node; a gap is a gap."""
    url, cluster = context.settings.exporter, context.cluster or ""
    axis = Axis.until(SystemClock().now().utc + timedelta(minutes=1), span, context.zone)
    minutes = cache.node_minutes(context.settings.rollups, cluster, *axis.utc)
    listed = cache.object_list(url, cluster, "nodes", _COLUMNS)
    old = set(minutes["node"]) if len(minutes) else set()
    names = tuple(sorted({*(str(name) for name in listed.rows["name"]), *old}))
    report = cache.recent_series(url, cluster, "nodes", names)
    live = {it.name: it.lines for it in report.objects}
    drawn = 0
    for index, name in enumerate(names[:_MAX_NODES]):
        mine = minutes[minutes["node"] == name] if len(minutes) else minutes
        found = node_history.node_history(mine, live.get(name, ()), report.at, axis)
        if not found:
            continue
        drawn += 1
        with st.container(key=f"plain-title-nodes-{index}", gap="small"):
            st.markdown(f"**{literal(name)}**")
            elements.chart(
                node_charts.node_history(found, axis),
                f"nodes-{index}",
                "Resources of the node over time, and their limits as dashed lines.",
                axis.end,
            )
    if not drawn:
        st.caption(f"No data of nodes {span.words(context.zone)}.")
    elif len(names) > _MAX_NODES:
        st.caption(f"The first {_MAX_NODES} of {len(names)} nodes.")


@st.fragment(run_every="10s")
def _now(context: PageContext) -> None:
    snapshot = cache.exporter_state(context.settings.exporter).snapshot.of(context.cluster)
    if snapshot is not None:
        st.subheader("Cluster: headroom until publishers are blocked", anchor=False)
        vital_tiles.render(snapshot)
    listed = cache.object_list(context.settings.exporter, context.cluster or "", "nodes", _COLUMNS)
    if not listed.known:
        elements.plain("no-nodes", f"No node data: {listed.problem or 'not polled yet'}.")
        return
    st.subheader("Nodes: headroom until operations fail", anchor=False)
    for index, row in enumerate(listed.rows.sort_values("name").to_dict("records")):
        with st.container(border=True, key=f"plain-node-box-{index}"):
            _node(row)
    elements.download("nodes", lambda: listed.rows)
    if listed.age_seconds is not None:
        st.caption(f"As of {readable.duration(listed.age_seconds)} ago. A full bar means that the limit is reached.")


def _node(row: Mapping[Hashable, Any]) -> None:
    state = "running" if row["running"] else "not running" if row["running"] is False else "state unknown"
    words = [state]
    if row["rabbitmq_version"]:
        words.append(f"RabbitMQ {row['rabbitmq_version']}")
    if isinstance(row["uptime_seconds"], int | float):
        words.append(f"up {readable.duration(float(row['uptime_seconds']))}")
    if row["partitions"]:
        words.append(f"PARTITIONED from {', '.join(map(str, _as_list(row['partitions'])))}")
    st.markdown(f"**{literal(str(row['name']))}** {literal(', '.join(words))}")
    for column, (what, (used, total, effect)) in zip(st.columns(3, gap="medium"), _RESOURCES.items(), strict=True):
        with column:
            _bar(what, row[used], row[total], effect)
    queue, cores = row["run_queue"], row["processors"]
    if isinstance(queue, int) and isinstance(cores, int) and cores:
        st.caption(
            f"Run queue: {queue} Erlang {'process is' if queue == 1 else 'processes are'} waiting for {cores} cores"
            + (": the node has more work than cores." if queue > 2 * cores else ".")
        )


def _as_list(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _bar(what: str, used: object, total: object, effect: str) -> None:
    if not isinstance(used, int) or not isinstance(total, int) or total <= 0 or pd.isna(used):
        st.caption(f"{what}: not reported by this version.")
        return
    st.progress(min(used / total, 1.0), text=f"{what}: {used:,} of {total:,}; at the limit, {effect}")
