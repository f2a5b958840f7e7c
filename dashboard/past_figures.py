"""The charts of the last hours on the page "Now", made once for all who look. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from plotly.graph_objects import Figure

from dashboard import charts, frames
from dashboard.data.rollups import History
from dashboard.frames import Axis


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
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


def draw(history: History, axis: Axis) -> Past:
    """All charts, or none where there is nothing in that time."""
    nothing = all(each.empty for each in (history.latency, history.outcomes, history.bursts, history.redelivered))
    if history.problem is not None or nothing:
        return Past(problem=history.problem, begun=history.begun)
    batches = {name: frames.batches(history.bursts, axis, name) for name in frames.streams(history.bursts)}
    others = {
        "outcomes": charts.outcomes(frames.outcomes(history.outcomes, axis), axis),
        "batches": charts.batches(batches, axis),
        "redelivered": charts.redelivered(frames.redelivered(history.redelivered, axis), axis),
    }
    deepest = frames.depth(history.depth, axis)
    if deepest:
        others["depth"] = charts.depth(deepest, axis)
    return Past(begun=history.begun, latency=_latency(history, axis), others=others)


def _latency(history: History, axis: Axis) -> dict[str, Figure]:
    """One chart a queue type, all on the same scale."""
    shaped = {name: frames.latency(history.latency, axis, name) for name in frames.streams(history.latency)}
    low = min((float(item["p50"].min()) for item in shaped.values()), default=0.0)
    high = max((float(item["max"].max()) for item in shaped.values()), default=0.0)
    limits = (low, high) if 0 < low <= high else None
    return {name: charts.latency(lines, axis, name, limits) for name, lines in shaped.items()}
