"""Caches shared by all sessions of a server: ten viewers cause no more load on exporter and disk than one."""

from datetime import datetime
from typing import Any

import pandas as pd
import streamlit as st

from ackscope.object_path import Place
from ackscope.ranking import ObjectKey
from ackscope.reports import FindingReport
from dashboard.charts import minute_charts
from dashboard.charts.minute_charts import RecentCharts
from dashboard.data import history_answers, object_lists, object_minutes, queue_reports, rollups, subject_lines
from dashboard.data.exporter_client import ExporterClient
from dashboard.data.history_answers import ChangesInRange, HistoryAnswers, QueueBands
from dashboard.data.model import ExporterState, MetricSeries
from dashboard.data.object_lists import ObjectList
from dashboard.data.object_minutes import ObjectMinutes
from dashboard.data.queue_reports import QueueReport, SeriesReport
from dashboard.data.rollups import MinuteHistory
from dashboard.frames import consumer_rows, queue_rows
from dashboard.frames.minute_frames import Axis


@st.cache_resource(show_spinner=False)
def _client(url: str) -> ExporterClient:
    return ExporterClient(url)


@st.cache_resource(ttl=4, show_spinner=False)
def exporter_state(url: str) -> ExporterState:
    """State of the exporter, at most 4 s old; shared and immutable."""
    return _client(url).read()


def current_findings(url: str, cluster: str | None) -> tuple[FindingReport, ...]:
    """Current findings of a cluster."""
    known = exporter_state(url).findings.of(cluster)
    return known.findings if known else ()


@st.cache_resource(ttl=4, max_entries=32, show_spinner=False)
def object_list(url: str, cluster: str, name: str, columns: tuple[str, ...]) -> ObjectList:
    """One list of broker objects, at most 4 s old; shared, must not be changed."""
    return object_lists.read(url, cluster, name, columns)


@st.cache_resource(ttl=20, max_entries=32, show_spinner=False)
def consuming(url: str, cluster: str) -> frozenset[str] | None:
    """Clients and hosts with a consumer, at most 20 s old; None if the consumers or their connections are unknown."""
    consumers = object_list(url, cluster, "consumers", consumer_rows.CONSUMER_COLUMNS)
    connections = object_list(url, cluster, "connections", consumer_rows.CONNECTION_COLUMNS)
    if not (consumers.known and connections.known):
        return None
    channels = pd.DataFrame(columns=list(consumer_rows.CHANNEL_COLUMNS))
    rows = consumer_rows.consumer_rows(consumers.rows, channels, connections.rows)
    return frozenset(rows["client"]) | frozenset(rows["host"])


@st.cache_resource(ttl=20, max_entries=32, show_spinner=False)
def own_queues(url: str, cluster: str) -> int:
    """Number of queues of ackscope's own probes, at most 20 s old; 0 while the queues are unknown."""
    return int(object_list(url, cluster, "queues", ("name",)).rows["name"].map(queue_rows.is_own).sum())


@st.cache_resource(ttl=4, max_entries=64, show_spinner=False)
def subject_series(url: str, cluster: str, kind: str, vhost: str | None, name: str) -> tuple[MetricSeries, ...]:
    """Recent series of one subject, at most 4 s old; () if the exporter has none."""
    return subject_lines.read(url, cluster, kind, vhost, name)


@st.cache_resource(ttl=4, max_entries=32, show_spinner=False)
def queue_report(url: str, cluster: str, vhost: str, queue: str) -> QueueReport:
    """One queue from the exporter, at most 4 s old; shared and immutable."""
    return queue_reports.queue(url, cluster, vhost, queue)


@st.cache_resource(ttl=8, max_entries=32, show_spinner=False)
def recent_series(
    url: str, cluster: str, listed: str, objects: tuple[Any, ...], lines: tuple[str, ...] = ()
) -> SeriesReport:
    """Recent series of some objects, at most 8 s old; shared and immutable."""
    return queue_reports.series(url, cluster, listed, objects, lines)


@st.cache_data(ttl=10, show_spinner=False)
def rollup_clusters(root: Place) -> tuple[str, ...]:
    """Names of the clusters that have history."""
    return rollups.clusters(root)


@st.cache_data(ttl=5, show_spinner=False)
def last_minute(root: Place, cluster: str) -> datetime | None:
    """The newest minute of history."""
    return rollups.last_minute(root, cluster, _last_of_file)


@st.cache_data(max_entries=64, show_spinner=False)
def _last_of_file(path: Place) -> datetime | None:
    # Without a TTL: files are immutable.
    return rollups.last_of_file(path)


@st.cache_data(ttl=20, max_entries=32, show_spinner=False)
def minute_history(root: Place, cluster: str, start: datetime, end: datetime) -> MinuteHistory:
    """Minute rollups of a time range in whole minutes, so that all viewers in one minute share an entry."""
    return rollups.read(root, cluster, start, end, last_minute(root, cluster))


@st.cache_resource(ttl=20, max_entries=32, show_spinner=False)
def recent_charts(root: Place, cluster: str, axis: Axis) -> RecentCharts:
    """Charts of the recent history; shared, must not be changed."""
    return minute_charts.recent_charts(minute_history(root, cluster, *axis.utc), axis)


@st.cache_data(ttl=20, show_spinner=False)
def answers(root: Place, cluster: str) -> HistoryAnswers:
    """The latest hourly reports of the pipeline."""
    return history_answers.answers(root, cluster)


@st.cache_data(ttl=20, show_spinner=False)
def backtest(root: Place, cluster: str) -> HistoryAnswers:
    """The last backtest of a cluster."""
    return history_answers.backtest(root, cluster)


@st.cache_data(ttl=60, max_entries=64, show_spinner=False)
def changes(root: Place, cluster: str, start: datetime, end: datetime) -> ChangesInRange:
    """Change points and finding episodes of a time range in whole minutes."""
    return history_answers.changes(root, cluster, start, end)


@st.cache_data(ttl=20, max_entries=16, show_spinner=False)
def node_minutes(root: Place, cluster: str, start: datetime, end: datetime) -> pd.DataFrame:
    """Minutes of all nodes in a time range in whole minutes."""
    return history_answers.node_minutes(root, cluster, start, end)


@st.cache_data(ttl=60, max_entries=32, show_spinner=False)
def minutes_of(
    root: Place, cluster: str, objects: tuple[ObjectKey, ...], start: datetime, end: datetime
) -> ObjectMinutes:
    """Complete minutes of some objects in a time range in whole minutes."""
    return object_minutes.object_minutes(root, cluster, objects, start, _complete(root, cluster, end))


@st.cache_data(ttl=60, max_entries=32, show_spinner=False)
def queue_bands(root: Place, cluster: str, vhost: str, queue: str, start: datetime, end: datetime) -> QueueBands:
    """Complete minutes of one queue, and its baseline bands, in a time range in whole minutes."""
    return history_answers.queue_bands(root, cluster, vhost, queue, start, _complete(root, cluster, end))


def _complete(root: Place, cluster: str, end: datetime) -> datetime:
    """The end of a time range without the newest minute: its counts are too low if the pipeline ran during it."""
    newest: datetime | None = last_minute(root, cluster)
    return end if newest is None else min(end, newest)
