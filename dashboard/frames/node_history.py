"""Series of one node against its limits: minutes of the history, then the recent readings of the exporter. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import pandas as pd

from dashboard.data.model import MetricSeries
from dashboard.frames import queue_history
from dashboard.frames.minute_frames import Axis

_GIB = 1024.0**3


@dataclass(frozen=True, slots=True)
class NodeResource:
    """A resource of a node and its limit.

    Attributes:
        title: name and unit.
        used, limit: series of the exporter.
        used_column, limit_column: columns of `nodes_1m`; "" if the history does not have it.
        divisor: of the values, for the unit.
        floor: the limit is a minimum.
    """

    title: str
    used: str
    limit: str
    used_column: str
    limit_column: str
    divisor: float = 1.0
    floor: bool = False


RESOURCES = (
    NodeResource("Memory used, GiB", "mem_used", "mem_limit", "mem_used_max", "mem_limit_last", _GIB),
    NodeResource("Disk free, GiB", "disk_free", "disk_free_limit", "disk_free_min", "disk_free_limit_last", _GIB, True),
    NodeResource("Run queue, processes", "run_queue", "processors", "run_queue_max", ""),
    NodeResource("File descriptors", "fd_used", "fd_total", "fd_used_max", "fd_total_last"),
    NodeResource("Erlang processes", "proc_used", "proc_total", "proc_used_max", "proc_total_last"),
)


def node_history(
    minutes: pd.DataFrame, lines: Iterable[MetricSeries], now: datetime | None, axis: Axis
) -> dict[NodeResource, tuple[pd.Series, pd.Series]]:
    """Used and limit by resource and time; resources that this version does not report are left out.

    Args:
        minutes: rows of one node of `nodes_1m`.
        lines: series of the node from `/api/v1/trends`.
        now: time of that response; None without one.
        axis: time axis.
    """
    live = {line.name: line for line in lines}
    found = {}
    for resource in RESOURCES:
        used, limit = (
            queue_history.continued(
                queue_history.by_step(minutes, axis, column, resource.divisor),
                _scaled(live.get(name), resource.divisor),
                now,
                axis,
            )
            for name, column in (
                (resource.used, resource.used_column),
                (resource.limit, resource.limit_column),
            )
        )
        if used.notna().any():
            found[resource] = (used, limit)
    return found


def _scaled(line: MetricSeries | None, divisor: float) -> MetricSeries | None:
    if line is None:
        return None
    points = tuple((ago, None if value is None else value / divisor) for ago, value in line.line)
    return MetricSeries(name=line.name, unit=line.unit, line=points)
