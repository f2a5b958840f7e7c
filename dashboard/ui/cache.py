"""What the sessions of one server share, so that ten viewers cost the exporter and the disk no more than one."""

from datetime import datetime
from pathlib import Path

import streamlit as st

from dashboard.charts import recent_charts
from dashboard.charts.recent_charts import RecentCharts
from dashboard.data import object_lists, rollups
from dashboard.data.exporter_client import ExporterClient
from dashboard.data.model import ExporterState
from dashboard.data.object_lists import ObjectList
from dashboard.data.rollups import MinuteHistory
from dashboard.frames.minute_frames import Axis


@st.cache_resource(show_spinner=False)
def _exporter(url: str) -> ExporterClient:
    return ExporterClient(url)


@st.cache_resource(ttl=4, show_spinner=False)
def live(url: str) -> ExporterState:
    """What the exporter says, at most four seconds old; shared by all viewers, it cannot be changed."""
    return _exporter(url).read()


@st.cache_resource(ttl=4, max_entries=32, show_spinner=False)
def listed(url: str, cluster: str, name: str, columns: tuple[str, ...]) -> ObjectList:
    """One list of the broker's objects, at most four seconds old; shared by all viewers, not to be changed."""
    return object_lists.read(url, cluster, name, columns)


@st.cache_data(ttl=10, show_spinner=False)
def rollup_clusters(root: Path) -> tuple[str, ...]:
    """The clusters that have history."""
    return rollups.clusters(root)


@st.cache_data(ttl=5, show_spinner=False)
def last_minute(root: Path, cluster: str) -> datetime | None:
    """The newest minute of history."""
    return rollups.last_minute(root, cluster, _last_of_file)


@st.cache_data(max_entries=64, show_spinner=False)
def _last_of_file(path: Path) -> datetime | None:
    """The newest minute of a file; files never change."""
    return rollups.last_of_file(path)


@st.cache_data(ttl=20, max_entries=32, show_spinner=False)
def history(root: Path, cluster: str, start: datetime, end: datetime) -> MinuteHistory:
    """The rollups between two moments, both on whole minutes: all viewers of a minute share one entry."""
    return rollups.read(root, cluster, start, end)


@st.cache_resource(ttl=20, max_entries=32, show_spinner=False)
def past(root: Path, cluster: str, axis: Axis) -> RecentCharts:
    """The charts of the last hours; shared by all viewers of a minute, not to be changed."""
    return recent_charts.draw(history(root, cluster, *axis.utc), axis)
