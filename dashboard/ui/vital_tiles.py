"""Vital signs of the cluster: what goes through it against what is usual, nodes, and the headroom until it blocks."""

import streamlit as st

from ackscope.findings import Severity
from ackscope.snapshot import Node
from dashboard.data.model import ClusterSnapshot, ClusterVitals, VitalMetric
from dashboard.format import readable, vital_metrics
from dashboard.format.escape import literal
from dashboard.ui import elements, metric_tile


def render(vitals: ClusterSnapshot | None, load: ClusterVitals | None = None) -> None:
    """What goes through, then totals in a row, then a line a node; what was not told is left out."""
    known = tuple(sign for sign in load.signs if sign.name in vital_metrics.LABELS) if load else ()
    if known:
        with st.container(horizontal=True, gap="small", key="signs"):
            for sign in known:
                _sign(sign)
        for number, text in enumerate(vital_metrics.foot(known)):
            elements.plain(f"usual-{number}", text)
    if vitals is not None:
        _totals(vitals, levels=not known)


def _sign(sign: VitalMetric) -> None:
    outside = vital_metrics.is_outside(sign)
    band = (sign.usual.low, sign.usual.high) if sign.usual and vital_metrics.is_same(sign) else None
    with st.container(width=metric_tile.WIDE, gap="xsmall", key=f"sign-{sign.name}"):
        metric_tile.figure(sign, band=band, outside=outside is not None, meaning=vital_metrics.MEANINGS.get(sign.name))
        if outside is not None:
            elements.badge(elements.SEVERITIES[Severity.WARNING], outside)
        usual = vital_metrics.usual(sign)
        if usual is not None:
            st.caption(usual)


def _totals(vitals: ClusterSnapshot, *, levels: bool) -> None:
    overview, nodes, alarms = vitals.overview.value, vitals.nodes.value, vitals.alarms
    figures = {
        "Ready": readable.count(overview.messages_ready if overview else None),
        "Unacked": readable.count(overview.messages_unacked if overview else None),
        "Queues": readable.count(overview.queues if overview else None),
        "Consumers": readable.count(overview.consumers if overview else None),
        "Connections": readable.count(overview.connections if overview else None),
        "Nodes running": _running(nodes),
        "Resource alarms": readable.count(None if alarms is None else len(alarms)),
    }
    with st.container(horizontal=True, gap="small"):
        for name, text in figures.items():
            if levels or name not in {"Ready", "Unacked"}:
                with st.container(width=128):
                    st.metric(name, text)
    for alarm in alarms or ():
        st.error(
            f"{literal(alarm.resource)} alarm on {literal(alarm.node)}: publishers of the whole cluster are blocked",
            icon=":material/block:",
        )
    for index, node in enumerate(sorted(nodes or (), key=lambda item: (item.running is not False, item.name))):
        _node(index, node)
    if nodes is None:
        elements.plain("nodes", f"Nodes: not known. {vitals.nodes.error or ''}")


def _running(nodes: tuple[Node, ...] | None) -> str:
    if nodes is None:
        return readable.ABSENT
    running = [node.running for node in nodes]
    return f"{running.count(True)} of {len(running)}"


def _node(index: int, node: Node) -> None:
    with st.container(key=f"plain-node-{index}"):
        name, memory, disk = st.columns([2, 3, 3], vertical_alignment="center", gap="medium")
        with name, st.container(horizontal=True, gap="small", vertical_alignment="center"):
            st.markdown(f"**{literal(node.name)}**", width="content")
            if node.running is False:
                elements.badge(elements.SEVERITIES[Severity.CRITICAL], "not running")
            elif node.running is None:
                elements.badge(elements.UNKNOWN, "state unknown")
            if node.being_drained:
                elements.badge(elements.SEVERITIES[Severity.WARNING], "being drained")
        if node.running is False:
            return
        with memory:
            _bar(
                _share(node.mem_used, node.mem_limit),
                f"memory {readable.size(node.mem_used)} of {readable.size(node.mem_limit)}",
                alarm=node.mem_alarm,
            )
        with disk:
            _bar(
                _share(node.disk_free_limit, node.disk_free),
                f"disk {readable.size(node.disk_free)} free, must keep {readable.size(node.disk_free_limit)}",
                alarm=node.disk_free_alarm,
            )


def _share(used: int | None, limit: int | None) -> float | None:
    """How near the limit is, 0..1: at 1 the broker blocks publishers."""
    if used is None or limit is None:
        return None
    return min(used / limit, 1.0) if limit > 0 else 1.0


def _bar(share: float | None, text: str, *, alarm: bool | None) -> None:
    if share is None:
        st.caption(f"{text} (not told)")
        return
    st.progress(share, text=f"{':red[:material/block: ALARM] ' if alarm else ''}{text}")
