"""The page "Nodes": how far each is from the limits at which the broker stops publishers, or dies."""

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.format import readable
from dashboard.format.escape import literal
from dashboard.ui import cache, elements, vital_tiles
from dashboard.ui.layout import PageContext

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
_RESOURCES = {
    "File descriptors": ("fd_used", "fd_total", "new connections and files fail"),
    "Sockets": ("sockets_used", "sockets_total", "new connections are refused"),
    "Erlang processes": ("proc_used", "proc_total", "new connections, channels and queues fail, or the node dies"),
}


def render(place: PageContext) -> None:
    """Totals and bars of the cluster, then a box a node."""
    if place.cluster is None:
        st.caption("No cluster is known yet.")
        return
    _now(place)


@st.fragment(run_every="10s")
def _now(place: PageContext) -> None:
    signs = cache.live(place.settings.exporter).snapshot.of(place.cluster)
    if signs is not None:
        st.subheader("The cluster, and what is left until publishers are stopped", anchor=False)
        vital_tiles.render(signs)
    listed = cache.listed(place.settings.exporter, place.cluster or "", "nodes", _COLUMNS)
    if not listed.known:
        elements.plain("no-nodes", f"Nodes are not known: {listed.problem or 'not read yet'}.")
        return
    st.subheader("Each node, and what is left until something fails", anchor=False)
    for index, row in enumerate(listed.rows.sort_values("name").to_dict("records")):
        with st.container(border=True, key=f"plain-node-box-{index}"):
            _node(row)
    elements.save("nodes", lambda: listed.rows)
    if listed.age_seconds is not None:
        st.caption(f"As of {readable.span(listed.age_seconds)} ago. A bar that is full is a limit that is reached.")


def _node(row: Mapping[Hashable, Any]) -> None:
    state = "running" if row["running"] else "not running" if row["running"] is False else "state not known"
    words = [state]
    if row["rabbitmq_version"]:
        words.append(f"RabbitMQ {row['rabbitmq_version']}")
    if isinstance(row["uptime_seconds"], int | float):
        words.append(f"up {readable.span(float(row['uptime_seconds']))}")
    if row["partitions"]:
        words.append(f"PARTITIONED from {', '.join(map(str, _listed(row['partitions'])))}")
    st.markdown(f"**{literal(str(row['name']))}** {literal(', '.join(words))}")
    for column, (what, (used, total, effect)) in zip(st.columns(3, gap="medium"), _RESOURCES.items(), strict=True):
        with column:
            _bar(what, row[used], row[total], effect)
    queue, cores = row["run_queue"], row["processors"]
    if isinstance(queue, int) and isinstance(cores, int) and cores:
        st.caption(
            f"Run queue: {queue} Erlang {'process waits' if queue == 1 else 'processes wait'} for one of {cores} cores"
            + (": the node has more work than cores." if queue > 2 * cores else ".")
        )


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _bar(what: str, used: object, total: object, effect: str) -> None:
    if not isinstance(used, int) or not isinstance(total, int) or total <= 0 or pd.isna(used):
        st.caption(f"{what}: not told by this version.")
        return
    st.progress(min(used / total, 1.0), text=f"{what}: {used:,} of {total:,}; at the limit {effect}")
