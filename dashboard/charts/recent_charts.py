"""The charts of the last hours on the page "Now", made once for all who look. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from plotly.graph_objects import Figure

from dashboard.charts import minute_charts
from dashboard.data.rollups import MinuteHistory
from dashboard.frames import minute_frames
from dashboard.frames.minute_frames import Axis


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentCharts:
    """What is shown of the last hours; no figure of it may be changed.

    Attributes:
        problem: why it cannot be read.
        begun: the cluster has history, of whatever time.
        latency: by queue type.
        others: by the name of the chart; "depth" is not there where no queue held a message.
    """

    problem: str | None = None
    begun: bool = True
    latency: Mapping[str, Figure] = field(default_factory=dict)
    others: Mapping[str, Figure] = field(default_factory=dict)


def draw(history: MinuteHistory, axis: Axis) -> RecentCharts:
    """All charts, or none where there is nothing in that time."""
    nothing = all(each.empty for each in (history.latency, history.outcomes, history.bursts, history.redelivered))
    if history.problem is not None or nothing:
        return RecentCharts(problem=history.problem, begun=history.begun)
    batches = {
        name: minute_frames.batches(history.bursts, axis, name) for name in minute_frames.streams(history.bursts)
    }
    others = {
        "outcomes": minute_charts.outcomes(minute_frames.outcomes(history.outcomes, axis), axis),
        "batches": minute_charts.batches(batches, axis),
        "redelivered": minute_charts.redelivered(minute_frames.redelivered(history.redelivered, axis), axis),
    }
    deepest = minute_frames.depth(history.depth, axis)
    if deepest:
        others["depth"] = minute_charts.depth(deepest, axis)
    return RecentCharts(begun=history.begun, latency=_latency(history, axis), others=others)


def _latency(history: MinuteHistory, axis: Axis) -> dict[str, Figure]:
    """One chart a queue type, all on the same scale."""
    shaped = {
        name: minute_frames.latency(history.latency, axis, name) for name in minute_frames.streams(history.latency)
    }
    low = min((float(item["p50"].min()) for item in shaped.values()), default=0.0)
    high = max((float(item["max"].max()) for item in shaped.values()), default=0.0)
    limits = (low, high) if 0 < low <= high else None
    return {name: minute_charts.latency(lines, axis, name, limits) for name, lines in shaped.items()}
