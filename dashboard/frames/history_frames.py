"""History shaped for the page "History". Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ackscope import format as fmt
from ackscope.baselines import NOT_YET, hour_of_week
from ackscope.latency import BOUNDS_VERSION, COLUMNS, quantile
from ackscope.measures import measure, quantity
from ackscope.ranking import ChangedObject, ChangePoint, ObjectKey
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

_CURVES: Mapping[str, Mapping[str, tuple[str, float]]] = {
    "queue": {**MEASURES, "consumers": ("consumers_last", 1.0)},
    "channel": {
        "unacked": ("unacked_last", 1.0),
        "unconfirmed": ("unconfirmed_last", 1.0),
        "prefetch": ("prefetch_last", 1.0),
        **{name: (name, 60.0) for name in ("published", "confirmed", "delivered", "acked", "redelivered")},
    },
    "node": {
        "mem_used": ("mem_used_last", 1.0),
        "disk_free": ("disk_free_last", 1.0),
        "fd_used": ("fd_used_max", 1.0),
        "sockets_used": ("sockets_used_max", 1.0),
        "proc_used": ("proc_used_max", 1.0),
    },
}
"""Kind of object -> measure -> (column of its table of minutes, divisor)."""
_OBJECT_COLUMNS = {"queue": ("vhost", "queue"), "channel": (None, "channel"), "node": (None, "node")}
_PROBE_CURVES = {
    f"{what}_{name}": (what, q) for what in ("confirm", "delivery") for name, q in (("p50", 0.5), ("p99", 0.99))
}
_WITHOUT_SHIFT = {"queue": ("unacked", "ready"), "channel": ("unacked",)}
"""Measures to show of an object that has a finding and no change of a level."""

_MOST_CURVES = 2


@dataclass(frozen=True, slots=True)
class ChangeCurve:
    """The course of one measure around the moment when it changed, or when a finding about its object began.

    Attributes:
        points: values by minute, in UTC; unknown minutes are absent.
        at: seconds since 1970 of the change.
        shift: levels before and after; None if there is a finding and no change of a level.
    """

    measure: str
    points: pd.Series
    at: float
    shift: ChangePoint | None = None


def rank_by_size(changed: Iterable[ChangedObject]) -> tuple[ChangedObject, ...]:
    """Changed objects, the largest and most certain change first; equal ones in order of time."""
    return tuple(sorted(changed, key=lambda it: (-it.strength, it.at)))


def shift_text(shift: ChangePoint) -> str:
    """From which level to which, how unusual that is, and for how long: `ack rate: 120/s to 0/s, ...`."""
    what = measure(shift.measure)
    # The words "messages ready" already contain their unit.
    unit = "" if what.unit == "messages" else what.unit
    levels = f"{quantity(shift.before, unit)} \N{RIGHTWARDS ARROW} {quantity(shift.after, unit)}"
    lasts = f", for {fmt.whole_minutes(shift.minutes)} so far" if shift.minutes else ""
    return f"{what.words}: {levels} ({unusual_text(shift.score)}{lasts})"


def unusual_text(score: float) -> str:
    """How far a change is outside what is usual: its size in robust spreads of the time before."""
    size = abs(score)
    if size != size:  # noqa: PLR0124  NaN: the scatter before is unknown
        return "scatter before unknown"
    return "over 100 times the scatter before" if size > 100 else f"{fmt.number(round(size))} times the scatter before"


def curves(changed: ChangedObject, rows: Mapping[str, pd.DataFrame]) -> list[ChangeCurve]:
    """The curves of the largest changes of an object, of up to two measures; those without data are left out.

    Args:
        changed: the object.
        rows: minute rows by kind of object.
    """
    largest: dict[tuple[ObjectKey, str], ChangePoint] = {}
    for shift in sorted((*changed.shifts, *changed.parts), key=lambda it: (it not in changed.shifts, -abs(it.score))):
        largest.setdefault((shift.subject, shift.measure), shift)
    wanted = [ChangeCurve(it.measure, _values(rows, it.subject, it.measure), it.at, it) for it in largest.values()]
    if not wanted:
        key = (changed.kind, changed.vhost, changed.name)
        names = _WITHOUT_SHIFT.get(changed.kind, ())
        wanted = [ChangeCurve(name, _values(rows, key, name), changed.at) for name in names]
    return [it for it in wanted if len(it.points) > 1][:_MOST_CURVES]


def _values(rows: Mapping[str, pd.DataFrame], subject: ObjectKey, name: str) -> pd.Series:
    kind, vhost, who = subject
    found = rows.get(kind)
    if found is None or found.empty:
        return pd.Series(dtype=float)
    if kind == "probe":
        return _probe_values(found, who, name)
    column, divisor = _CURVES.get(kind, {}).get(name, (None, 1.0))
    if column is None:
        return pd.Series(dtype=float)
    place, named = _OBJECT_COLUMNS[kind]
    mine = found[found[named] == who]
    if place is not None:
        mine = mine[mine[place] == vhost]
    values: pd.Series = mine.set_index("minute")[column].astype(float).dropna().sort_index() / divisor
    return values


def _probe_values(found: pd.DataFrame, who: str, name: str) -> pd.Series:
    """A quantile per minute, over all delivery modes: buckets are added up first."""
    probe, stream, *node = who.split("/", 2)
    what, q = _PROBE_CURVES.get(name, ("", 0.0))
    mine = found[
        (found["probe"] == probe)
        & (found["stream"] == stream)
        & (found["node"] == (node[0] if node else ""))
        & (found["measure"] == what)
        & (found["bounds"] == BOUNDS_VERSION)
    ]
    if mine.empty:
        return pd.Series(dtype=float)
    merged = mine.groupby("minute")[list(COLUMNS)].sum().join(mine.groupby("minute")["max"].max())
    values = [
        quantile(tuple(int(row[column]) for column in COLUMNS), float(row["max"]), q)
        for row in merged.to_dict("records")
    ]
    return pd.Series(values, index=merged.index, dtype=float).dropna()


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
