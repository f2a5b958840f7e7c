"""A figure with the line of its last minutes below it."""

import streamlit as st

from dashboard.charts import sparkline
from dashboard.data.model import MetricSeries
from dashboard.format import vital_metrics

WIDE = 140
"""Pixels of one figure: seven of them fit side by side."""


def figure(
    line: MetricSeries, *, band: tuple[float, float] | None = None, outside: bool = False, meaning: str | None = None
) -> None:
    """The latest value in large, and how it went: our own words and numbers only.

    Args:
        line: of a name that `signs.LABELS` knows.
        band: edges of what is usual.
        outside: the latest value is not within.
        meaning: behind a question mark.
    """
    st.metric(vital_metrics.LABELS[line.name], vital_metrics.figure(line), help=meaning)
    picture = sparkline.spark(line.line, band, outside=outside)
    if picture is not None:
        st.image(picture, width=sparkline.WIDTH, alt=vital_metrics.told(line))
