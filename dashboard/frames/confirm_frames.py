"""Confirm latency shaped for the page "Confirms": a heatmap, bursts, and where the time goes. Pure."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd

from ackscope.latency import BOUNDS_VERSION, COLUMNS, EDGES
from dashboard.data.model import ConfirmLayer
from dashboard.format.timezones import UTC as ZONE_UTC
from dashboard.format.timezones import Zone
from dashboard.frames.minute_frames import Axis

LOWEST, HIGHEST = EDGES[0] / (EDGES[1] / EDGES[0]), EDGES[-1] * (EDGES[1] / EDGES[0])
"""Seconds: where the first and the last bucket, which have only one edge, are drawn from and to."""


def heat(rows: pd.DataFrame, axis: Axis, stream: str) -> pd.DataFrame:
    """How many confirms fell into each bucket: a column a step (NaN where nobody looked), a row a bucket.

    The index tells the upper edge of each bucket, seconds; empty buckets below and above all others are left out.
    """
    mine = rows[
        (rows["probe"] == "confirm")
        & (rows["measure"] == "confirm")
        & (rows["stream"] == stream)
        & (rows["bounds"] == BOUNDS_VERSION)
    ]
    sums = mine.groupby(axis.place(mine["minute"]))[list(COLUMNS)].sum().astype(float).reindex(axis.points)
    grid = sums.T
    grid.index = pd.Index([*EDGES, HIGHEST], name="edge")
    used = np.flatnonzero(grid.fillna(0).sum(axis=1).to_numpy() > 0)
    if not len(used):
        return grid.iloc[:0]
    return grid.iloc[max(used[0] - 1, 0) : used[-1] + 2]


def bursts(rows: pd.DataFrame, stream: str) -> pd.DataFrame:
    """Ack bursts of one stream, a row a minute: `size` (messages a burst) and `interval` (seconds between bursts).

    Means of the minute; minutes without an interval are left out.
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
    """What each layer adds, a row each: `node`, `layer`, `seconds` (NaN where it cannot be told), `because`."""
    told = [(it.node, it.name, it.seconds, it.because) for it in layers]
    rows = pd.DataFrame(told, columns=["node", "layer", "seconds", "because"])
    rows["seconds"] = pd.to_numeric(rows["seconds"], errors="coerce")
    return rows


SHORTEST, LONGEST = timedelta(minutes=5), timedelta(days=1)
"""What the page can be narrowed to: below the one a line has no points, above the other charts are not drawn."""


def stretch(edges: Iterable[str | float], axis: Axis) -> tuple[datetime, datetime] | None:
    """Whole minutes, in UTC, around what was selected on a chart; None where nothing was.

    Args:
        edges: times as the chart has them: wall time of the axis without a zone, as text or milliseconds.
        axis: of the chart.
    """
    found = [pd.Timestamp(edge) if isinstance(edge, str) else pd.Timestamp(edge, unit="ms") for edge in edges]
    if not found:
        return None
    start, end = (
        at.tz_localize(None).tz_localize(axis.start.tzinfo).tz_convert(UTC).to_pydatetime()
        for at in (min(found), max(found))
    )
    return widened(start, end)


def widened(start: datetime, end: datetime) -> tuple[datetime, datetime]:
    """Whole minutes that hold a stretch, and `SHORTEST` at least, around its middle."""
    minute = timedelta(minutes=1)
    first = start.replace(second=0, microsecond=0)
    last = end.replace(second=0, microsecond=0)
    last += minute if last < end else timedelta(0)
    short = SHORTEST - (last - first)
    if short > timedelta(0):
        first -= short // 2 // minute * minute
        last = first + SHORTEST
    return first, last


def step_of(length: timedelta) -> int:
    """Minutes of one point on an axis so long: 180 points at most, and 145 of a day."""
    return next(step for step in (1, 2, 5, 10) if length <= timedelta(minutes=180) * step)


def axis_of(start: datetime, end: datetime, zone: Zone = ZONE_UTC) -> Axis:
    """The axis of a stretch, in whole steps; the last one may go beyond it."""
    step = step_of(end - start)
    steps = -(-(end - start) // timedelta(minutes=step))
    return Axis.between(start, start + steps * timedelta(minutes=step), step, zone)


def latency_rows(lines: pd.DataFrame) -> pd.DataFrame:
    """Lines of latency as rows to be saved: `at`, `p50_seconds`, `p99_seconds`, `max_seconds`, `confirms`."""
    words = {"p50": "p50_seconds", "p99": "p99_seconds", "max": "max_seconds", "count": "confirms"}
    return lines.rename(columns=words).rename_axis("at").reset_index()
