"""Confirm latency shaped for the page "Confirms": heatmap, ack bursts, layers, and selected time ranges. Pure."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd

from ackscope.latency import BOUNDS_VERSION, COLUMNS, EDGES
from dashboard.data.model import ConfirmLayer
from dashboard.format.probe_labels import BELOW_ERROR
from dashboard.format.timezones import UTC as ZONE_UTC
from dashboard.format.timezones import Zone
from dashboard.frames import minute_frames
from dashboard.frames.minute_frames import MIN_RANGE, Axis, Range
from probes.latency_layers import LEAST_MESSAGES, STREAMS

HIGHEST = EDGES[-1] * (EDGES[1] / EDGES[0])
"""Seconds: upper edge at which the last bucket, which has none, is drawn."""


def heat(rows: pd.DataFrame, axis: Axis, stream: str) -> pd.DataFrame:
    """Number of confirms per bucket: one column per step (NaN without data), one row per bucket.

    The index is the upper edge of each bucket in seconds. Empty buckets below and above all others are removed, except
    for one at each end.
    """
    mine = rows[
        (rows["probe"] == "confirm")
        & (rows["measure"] == "confirm")
        & (rows["stream"] == stream)
        & (rows["bounds"] == BOUNDS_VERSION)
    ]
    sums = mine.groupby(axis.step_of(mine["minute"]))[list(COLUMNS)].sum().astype(float).reindex(axis.points)
    grid = sums.T
    grid.index = pd.Index([*EDGES, HIGHEST], name="edge")
    used = np.flatnonzero(grid.fillna(0).sum(axis=1).to_numpy() > 0)
    if not len(used):
        return grid.iloc[:0]
    return grid.iloc[max(used[0] - 1, 0) : used[-1] + 2]


def bursts(rows: pd.DataFrame, stream: str) -> pd.DataFrame:
    """Ack bursts of one stream, one row per minute: `size` (messages per burst), `interval` (seconds between bursts).

    Values are means of the minute; minutes without an interval are excluded.
    """
    mine = rows[(rows["stream"] == stream) & (rows["bursts"] > 0) & (rows["interval_count"] > 0)]
    by_minute = mine.groupby("minute")[["messages", "bursts", "interval_sum", "interval_count"]].sum()
    return pd.DataFrame(
        {
            "size": by_minute["messages"] / by_minute["bursts"],
            "interval": by_minute["interval_sum"] / by_minute["interval_count"],
        }
    )


def layer_rows(layers: Sequence[ConfirmLayer]) -> pd.DataFrame:
    """Latency of each layer: `node`, `layer`, `seconds` (NaN if it cannot be measured), `because`.

    A negative difference cannot be measured: it is less than the medians vary.
    """
    values = [
        (it.node, it.name, None, f"{BELOW_ERROR}: {it.because}")
        if it.seconds is not None and it.seconds < 0
        else (it.node, it.name, it.seconds, it.because)
        for it in layers
    ]
    rows = pd.DataFrame(values, columns=["node", "layer", "seconds", "because"])
    rows["seconds"] = pd.to_numeric(rows["seconds"], errors="coerce")
    return rows


STACKS = {
    "unroutable": ("network+channel",),
    "transient": ("network+channel", "queue"),
    "classic": ("network+channel", "queue", "persist"),
    "classic-large": ("network+channel", "queue", "persist", "store"),
    "quorum": ("network+channel", "queue", "replicate"),
    "stream": ("network+channel", "stream"),
}
"""Stream of the confirm probe -> the layers that its confirm passes, from the network on."""


def layer_history(rows: pd.DataFrame, axis: Axis, stream: str) -> pd.DataFrame:
    """Seconds that each layer adds to the median confirm of a stream, by step; null without enough messages.

    The layers are those of `probes.latency_layers`: differences of two medians. A difference below zero is less than
    the medians vary, and counts as zero. No column if the stream has no layers.
    """
    layers = STACKS.get(stream, ())
    medians: dict[str, pd.Series] = {}
    for name in {it for layer in layers for it in STREAMS[layer] if it is not None}:
        lines = minute_frames.latency(rows, axis, name)
        medians[name] = lines["p50"].where(lines["count"] >= LEAST_MESSAGES)
    shaped = {
        layer: (medians[whole] if less is None else medians[whole] - medians[less]).clip(lower=0.0)
        for layer in layers
        for whole, less in [STREAMS[layer]]
    }
    found = pd.DataFrame(shaped, index=axis.points, dtype=float)
    # A stack without one of its layers would look like a faster confirm.
    return found.where(found.notna().all(axis=1))


def selected_range(edges: Iterable[str | float], axis: Axis) -> tuple[datetime, datetime] | None:
    """The time range selected on a chart, in UTC and whole minutes; None without a selection.

    Args:
        edges: times as in the chart: local time of the axis without a zone, as text or milliseconds.
        axis: axis of the chart.
    """
    found = [pd.Timestamp(edge) if isinstance(edge, str) else pd.Timestamp(edge, unit="ms") for edge in edges]
    if not found:
        return None
    start, end = (
        at.tz_localize(None).tz_localize(axis.start.tzinfo).tz_convert(UTC).to_pydatetime()
        for at in (min(found), max(found))
    )
    return widen(start, end)


def widen(start: datetime, end: datetime) -> tuple[datetime, datetime]:
    """Extend a time range to whole minutes, and to at least `MIN_RANGE` around its centre."""
    minute = timedelta(minutes=1)
    first = start.replace(second=0, microsecond=0)
    last = end.replace(second=0, microsecond=0)
    last += minute if last < end else timedelta(0)
    missing = MIN_RANGE - (last - first)
    if missing > timedelta(0):
        first -= missing // 2 // minute * minute
        last = first + MIN_RANGE
    return first, last


def axis_for(start: datetime, end: datetime, zone: Zone = ZONE_UTC) -> Axis:
    """The axis of a fixed range, in whole steps; the last step may end after the range."""
    return Axis.until(end, Range.between(start, end), zone)


def latency_rows(lines: pd.DataFrame) -> pd.DataFrame:
    """Confirm latency as rows for CSV: `at`, `p50_seconds`, `p99_seconds`, `max_seconds`, `confirms`."""
    names = {"p50": "p50_seconds", "p99": "p99_seconds", "max": "max_seconds", "count": "confirms"}
    return lines.rename(columns=names).rename_axis("at").reset_index()
