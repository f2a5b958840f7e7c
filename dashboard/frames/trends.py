"""Sparklines of table rows: series with even steps, as `LineChartColumn` draws them. Pure.

Such a sparkline cannot show a gap. A series with one is therefore cut at its latest gap, and is shorter.
"""

from collections.abc import Sequence

import numpy as np

from dashboard.data.model import Point

QUEUE_SECONDS, CHANNEL_SECONDS = 600.0, 180.0
"""Length of a sparkline of a queue and of a channel, as the exporter holds their readings."""
_POINTS = 25


def even(line: Sequence[Point], seconds: float = QUEUE_SECONDS) -> list[float] | None:
    """A series at even steps up to its latest value; None without two values in a row.

    Args:
        line: (seconds ago, value), oldest first; a value of None is a gap.
        seconds: length of the whole sparkline; a shorter series gets fewer points.
    """
    start = max((place + 1 for place, (_, value) in enumerate(line) if value is None), default=0)
    known = [(-ago, value) for ago, value in line[start:] if value is not None and ago <= seconds]
    if len(known) < 2:
        return None
    times, values = zip(*known, strict=True)
    step = seconds / (_POINTS - 1)
    number = max(2, int((times[-1] - times[0]) / step) + 1)
    at = times[-1] - step * np.arange(number - 1, -1, -1)
    return [round(float(value), 3) for value in np.interp(np.maximum(at, times[0]), times, values)]


def total(*lines: list[float] | None) -> list[float] | None:
    """The sum of series that end at the same time, over the shortest; None if one is unknown."""
    if any(line is None for line in lines):
        return None
    known = [line for line in lines if line is not None]
    least = min(map(len, known))
    return [sum(values) for values in zip(*(line[-least:] for line in known), strict=True)]
