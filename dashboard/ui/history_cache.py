"""What the sessions of one server share of the history page."""

from datetime import datetime
from pathlib import Path

import streamlit as st

from dashboard.data import history_answers as files
from dashboard.data.history_answers import ChangesInRange, HistoryAnswers, QueueBands


@st.cache_data(ttl=20, show_spinner=False)
def answers(root: Path, cluster: str) -> HistoryAnswers:
    """The standing questions, as the pipeline answered them last."""
    return files.answers(root, cluster)


@st.cache_data(ttl=60, max_entries=64, show_spinner=False)
def moves(root: Path, cluster: str, start: datetime, end: datetime) -> ChangesInRange:
    """What moved between two moments, both on whole minutes."""
    return files.moves(root, cluster, start, end)


@st.cache_data(ttl=60, max_entries=32, show_spinner=False)
def banded(root: Path, cluster: str, vhost: str, queue: str, start: datetime, end: datetime) -> QueueBands:
    """One queue and its bands between two moments, both on whole minutes."""
    return files.banded(root, cluster, vhost, queue, start, end)
