"""History shaped for the page "History". Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from ackscope.baselines import NOT_YET, hour_of_week
from dashboard.frames.minute_frames import Axis

MEASURES = {
    "ready": ("messages_ready_last", 1.0),
    "unacked": ("messages_unacked_last", 1.0),
    "published": ("published", 60.0),
    "delivered": ("delivered", 60.0),
    "acked": ("acked", 60.0),
    "redelivered": ("redelivered", 60.0),
}
"""Measures of a queue that have baseline bands -> (column of `queues_1m`, divisor)."""


def with_band(minutes: pd.DataFrame, bands: pd.DataFrame, axis: Axis, measure: str) -> pd.DataFrame:
    """`value` of one measure and its band `low`, `middle` (median) and `high`, by step; unknown values are null.

    The value of a step is the mean of its minutes.
    """
    column, divisor = MEASURES[measure]
    shaped = pd.DataFrame(index=axis.points, columns=["value", "low", "middle", "high"], dtype=float)
    if not minutes.empty:
        values = minutes.groupby(axis.step_of(minutes["minute"]))[column].mean()
        shaped["value"] = values.astype(float).reindex(axis.points) / divisor
    mine = bands[(bands["measure"] == measure) & (bands["scope"] != NOT_YET)] if not bands.empty else bands
    if not mine.empty:
        hours = [hour_of_week(at.timestamp()) for at in axis.points]
        by_hour = mine.set_index("hour_of_week")[["low", "middle", "high"]].reindex(hours)
        shaped[["low", "middle", "high"]] = by_hour.to_numpy(dtype=float)
    return shaped


def missing_band_reason(bands: pd.DataFrame, measure: str) -> str | None:
    """Why there is no band; None if there is one."""
    mine = bands[bands["measure"] == measure] if not bands.empty else bands
    if mine.empty:
        return "no history of this queue"
    if (mine["scope"] != NOT_YET).any():
        return None
    reasons = mine["reason"].dropna()
    return str(reasons.iloc[-1]) if len(reasons) else "too little history"


def known_queues(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Queues (vhost, name) in the pipeline's reports, the worst first."""
    worst = document.get("worst", {})
    lists: Sequence[Sequence[Mapping[str, Any]]] = (
        worst.get("backlog", {}).get("rows", ()),
        worst.get("redelivered", {}).get("rows", ()),
        document.get("weeks", {}).get("more", {}).get("queues", ()),
    )
    return list(dict.fromkeys((row["vhost"], row["queue"]) for rows in lists for row in rows))
