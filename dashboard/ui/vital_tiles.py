"""Tiles of metrics with sparklines, cluster totals, and how close each node is to blocking publishers."""

import streamlit as st

from ackscope import format as fmt
from ackscope.findings import Severity
from ackscope.snapshot import Node
from dashboard.charts import sparkline
from dashboard.data.model import ClusterSnapshot, ClusterVitals, MetricSeries, VitalMetric
from dashboard.format import readable, vital_metrics
from dashboard.format.escape import literal
from dashboard.ui import elements

TILE_WIDTH = 140
"""Pixels: seven tiles fit side by side."""


def metric_tile(
    line: MetricSeries, *, band: tuple[float, float] | None = None, outside: bool = False, meaning: str | None = None
) -> None:
    """The latest value with a sparkline below it; shows no foreign text.

    Args:
        line: a series whose name is in `vital_metrics.LABELS`.
        band: lower and upper edge of the baseline band.
        outside: the latest value is outside the band.
        meaning: explanation behind a question mark.
    """
    st.metric(vital_metrics.LABELS[line.name], vital_metrics.value_text(line), help=meaning)
    picture = sparkline.sparkline(line.line, band, outside=outside)
    if picture is not None:
        st.image(picture, width=sparkline.WIDTH, alt=vital_metrics.trend_text(line))
    else:
        st.caption("no curve: fewer than two values")


def render(snapshot: ClusterSnapshot | None, vitals: ClusterVitals | None = None, own_queues: int = 0) -> None:
    """The vital metrics, a row of totals, and a line per node; unknown parts are omitted.

    Args:
        snapshot: totals and nodes.
        vitals: metrics with their recent values.
        own_queues: queues of ackscope's own probes, which the total of all queues includes.
    """
    known = tuple(metric for metric in vitals.signs if metric.name in vital_metrics.LABELS) if vitals else ()
    if known:
        with st.container(horizontal=True, gap="small", key="signs"):
            for metric in known:
                _vital_tile(metric)
        for number, text in enumerate(vital_metrics.footnotes(known)):
            elements.plain(f"usual-{number}", text)
    if snapshot is not None:
        _totals(snapshot, own_queues, levels=not known)


def _vital_tile(metric: VitalMetric) -> None:
    deviation = vital_metrics.deviation(metric)
    band = (metric.usual.low, metric.usual.high) if metric.usual and vital_metrics.band_fits(metric) else None
    with st.container(width=TILE_WIDTH, gap="xsmall", key=f"sign-{metric.name}"):
        meaning = vital_metrics.MEANINGS.get(metric.name)
        metric_tile(metric, band=band, outside=deviation is not None, meaning=meaning)
        if deviation is not None:
            elements.badge(elements.SEVERITIES[Severity.WARNING], deviation)
        usual = vital_metrics.band_text(metric)
        if usual is not None:
            st.caption(usual)


def _totals(snapshot: ClusterSnapshot, own_queues: int, *, levels: bool) -> None:
    overview, nodes, alarms = snapshot.overview.value, snapshot.nodes.value, snapshot.alarms
    queues = None if overview is None or overview.queues is None else max(overview.queues - own_queues, 0)
    totals = {
        "Ready": readable.count(overview.messages_ready if overview else None),
        "Unacked": readable.count(overview.messages_unacked if overview else None),
        "Queues": readable.count(queues),
        "Consumers": readable.count(overview.consumers if overview else None),
        "Connections": readable.count(overview.connections if overview else None),
        "Nodes running": _running(nodes),
        "Resource alarms": readable.count(None if alarms is None else len(alarms)),
    }
    with st.container(horizontal=True, gap="small"):
        for name, text in totals.items():
            if levels or name not in {"Ready", "Unacked"}:
                with st.container(width=128):
                    st.metric(name, text)
                    if name == "Queues" and own_queues and queues is not None:
                        st.caption(f"and {readable.count(own_queues)} of probes")
    for alarm in alarms or ():
        st.error(
            f"{literal(alarm.resource)} alarm on {literal(alarm.node)}: publishers of the whole cluster are blocked",
            icon=":material/block:",
        )
    for index, node in enumerate(sorted(nodes or (), key=lambda item: (item.running is not False, item.name))):
        _node(index, node)
    if nodes is None:
        elements.plain("nodes", f"Nodes: unknown. {snapshot.nodes.error or ''}")


def _running(nodes: tuple[Node, ...] | None) -> str:
    if nodes is None:
        return fmt.ABSENT
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
                f"memory {fmt.size(node.mem_used)} of {fmt.size(node.mem_limit)}",
                alarm=node.mem_alarm,
            )
        with disk:
            _bar(
                _share(node.disk_free_limit, node.disk_free),
                f"disk {fmt.size(node.disk_free)} free, limit {fmt.size(node.disk_free_limit)}",
                alarm=node.disk_free_alarm,
            )


def _share(used: int | None, limit: int | None) -> float | None:
    """The used share of a limit, 0 to 1. At 1 the broker blocks publishers."""
    if used is None or limit is None:
        return None
    return min(used / limit, 1.0) if limit > 0 else 1.0


def _bar(share: float | None, text: str, *, alarm: bool | None) -> None:
    if share is None:
        st.caption(f"{text} (unknown)")
        return
    st.progress(share, text=f"{':red[:material/block: ALARM] ' if alarm else ''}{text}")
