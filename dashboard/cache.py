"""What the sessions of one server share, so that ten viewers cost the exporter and the disk no more than one."""

from datetime import datetime
from pathlib import Path

import streamlit as st

from dashboard.data import rollups
from dashboard.data.exporter import Exporter
from dashboard.data.rollups import History
from dashboard.model import Live


@st.cache_resource(show_spinner=False)
def _exporter(url: str) -> Exporter:
    return Exporter(url)


@st.cache_data(ttl=2, show_spinner=False)
def live(url: str) -> Live:
    """What the exporter says, at most two seconds old."""
    return _exporter(url).read()


@st.cache_data(ttl=10, show_spinner=False)
def rollup_clusters(root: Path) -> tuple[str, ...]:
    """The clusters that have history."""
    return rollups.clusters(root)


@st.cache_data(ttl=5, show_spinner=False)
def last_minute(root: Path, cluster: str) -> datetime | None:
    """The newest minute of history."""
    return rollups.last_minute(root, cluster)


@st.cache_data(ttl=20, max_entries=32, show_spinner=False)
def history(root: Path, cluster: str, start: datetime, end: datetime) -> History:
    """The rollups between two moments, both on whole minutes: all viewers of a minute share one entry."""
    return rollups.read(root, cluster, start, end)
