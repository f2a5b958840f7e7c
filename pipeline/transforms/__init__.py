"""Landing rows to rollup rows: pure functions DataFrame -> DataFrame, one module per rollup table."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from ackscope.tables import (
    ACK_BURSTS,
    BURSTS_1M,
    CHANNEL_SAMPLES,
    CHANNELS_1M,
    CONSUMER_SAMPLES,
    CONSUMERS_1M,
    LATENCY_1M,
    NODE_SAMPLES,
    NODES_1M,
    OUTCOMES_1M,
    POLL_SAMPLES,
    POLLS_1M,
    PROBE_MESSAGES,
    PROBE_STEPS,
    QUEUE_SAMPLES,
    QUEUES_1M,
    STEPS_1M,
    Table,
)
from pipeline.transforms.bursts import bursts_1m
from pipeline.transforms.channels import channels_1m
from pipeline.transforms.consumers import consumers_1m
from pipeline.transforms.counter_rates import LOOKBACK_SECONDS, MAX_HOLD_MINUTES
from pipeline.transforms.latency import latency_1m
from pipeline.transforms.nodes import nodes_1m
from pipeline.transforms.outcomes import outcomes_1m
from pipeline.transforms.polls import polls_1m
from pipeline.transforms.queues import queues_1m
from pipeline.transforms.steps import steps_1m


@dataclass(frozen=True, slots=True)
class Transform:
    """How one rollup table is computed.

    Attributes:
        build: takes the rows of `source`, then those of each table in `also_reads` as an Arrow table, then the values
            of `coded`; with a `lookback`, finally the range of minutes to return (`SampleHold.minutes`). Columns in
            `scope` are part of every key, and come first in its result: `side_by_side.scope_of` has that of rows of
            several clusters.
        lookback: seconds before and after an hour whose landing rows its rollup also depends on; at most an hour.
        also_reads: small tables that its rollup depends on, too; the driver reads them.
        coded: a column of text of `source`, with few values; the driver reads them, and they are aggregated as numbers.
        max_growth: maximum rollup rows per landing row; 0: always fewer rollup rows than landing rows.
    """

    source: Table
    rollup: Table
    build: Callable[..., DataFrame]
    lookback: int = 0
    also_reads: tuple[Table, ...] = ()
    coded: str = ""
    max_growth: int = 0

    @property
    def sources(self) -> tuple[Table, ...]:
        """Every landing table that it reads."""
        return (self.source, *self.also_reads)


TRANSFORMS = (
    Transform(PROBE_MESSAGES, LATENCY_1M, latency_1m),
    Transform(PROBE_MESSAGES, OUTCOMES_1M, outcomes_1m),
    Transform(ACK_BURSTS, BURSTS_1M, bursts_1m),
    Transform(PROBE_STEPS, STEPS_1M, steps_1m),
    Transform(
        QUEUE_SAMPLES,
        QUEUES_1M,
        queues_1m,
        lookback=LOOKBACK_SECONDS,
        also_reads=(POLL_SAMPLES,),
        coded="queue_type",
        max_growth=MAX_HOLD_MINUTES,
    ),
    Transform(
        CHANNEL_SAMPLES,
        CHANNELS_1M,
        channels_1m,
        lookback=LOOKBACK_SECONDS,
        also_reads=(POLL_SAMPLES,),
        max_growth=MAX_HOLD_MINUTES,
    ),
    Transform(
        CONSUMER_SAMPLES,
        CONSUMERS_1M,
        consumers_1m,
        lookback=LOOKBACK_SECONDS,
        also_reads=(POLL_SAMPLES,),
        max_growth=MAX_HOLD_MINUTES,
    ),
    Transform(NODE_SAMPLES, NODES_1M, nodes_1m),
    Transform(POLL_SAMPLES, POLLS_1M, polls_1m),
)
