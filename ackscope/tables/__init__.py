"""The tables that rooms exchange as Parquet files, each declared once for writers, Spark and the dashboard.

Layout of landing and rollups: `<root>/<table>/cluster=<name>/date=<YYYY-MM-DD>/<file>.parquet`; the two partition
columns are in the path only. `date` is the UTC date of the row's time column. A file is written under a name that
starts with "." or "_" (which Spark and Arrow skip), fsynced, and renamed, so readers never see a partial file. The
manifest (`ackscope.manifest`) lists the current rollup files; a folder also holds recently replaced ones.
"""

from ackscope.tables.analysis import ANALYSES, BASELINES, CHANGES, EPISODES
from ackscope.tables.contract import PARTITIONS, Column, Kind, Merge, Table, coarser
from ackscope.tables.landing import (
    ACK_BURSTS,
    CHANNEL_SAMPLES,
    CONSUMER_SAMPLES,
    FINDING_EVENTS,
    HEARTBEAT,
    LANDING,
    NODE_SAMPLES,
    POLL_SAMPLES,
    PROBE_MESSAGES,
    PROBE_STEPS,
    QUEUE_SAMPLES,
)
from ackscope.tables.rollups import (
    BURSTS_1M,
    CHANNELS_1M,
    CONSUMERS_1M,
    DAYS,
    HOURS,
    LATENCY_1M,
    MEASURES,
    MINUTES,
    NODES_1M,
    OUTCOMES,
    OUTCOMES_1M,
    POLLS_1M,
    QUEUES_1M,
    STEPS_1M,
)

# All tables that Spark writes, by name.
ROLLUPS = MINUTES | {table.name: table for table in (*HOURS.values(), *DAYS.values(), *ANALYSES.values())}

__all__ = [
    "ACK_BURSTS",
    "ANALYSES",
    "BASELINES",
    "BURSTS_1M",
    "CHANGES",
    "CHANNELS_1M",
    "CHANNEL_SAMPLES",
    "CONSUMERS_1M",
    "CONSUMER_SAMPLES",
    "DAYS",
    "EPISODES",
    "FINDING_EVENTS",
    "HEARTBEAT",
    "HOURS",
    "LANDING",
    "LATENCY_1M",
    "MEASURES",
    "MINUTES",
    "NODES_1M",
    "NODE_SAMPLES",
    "OUTCOMES",
    "OUTCOMES_1M",
    "PARTITIONS",
    "POLLS_1M",
    "POLL_SAMPLES",
    "PROBE_MESSAGES",
    "PROBE_STEPS",
    "QUEUES_1M",
    "QUEUE_SAMPLES",
    "ROLLUPS",
    "STEPS_1M",
    "Column",
    "Kind",
    "Merge",
    "Table",
    "coarser",
]
