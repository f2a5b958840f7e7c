"""The tables that rooms exchange as Parquet files, each declared once: writer, Spark and dashboard read this.

Layout of both roots: `<root>/<table>/cluster=<name>/date=<YYYY-MM-DD>/<file>.parquet`; the two partition
columns are in the path only. `date` is the UTC date of the row's time column. A file is written under a
name that starts with "." or "_" (which Spark and Arrow skip), fsynced, and renamed: readers never see half a file.
"""

from dataclasses import dataclass
from enum import StrEnum

from ackscope import latency


class Kind(StrEnum):
    """Types that Arrow, Spark and pandas agree on."""

    STRING = "string"
    INT = "int64"
    FLOAT = "double"
    BOOL = "bool"
    TIME = "timestamp"
    """UTC, microseconds."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column; absent values are null, never a stand-in."""

    name: str
    kind: Kind
    doc: str
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """One table.

    Attributes:
        grain: what one row is, in words.
        time: the column that says when.
        key: the columns that tell rows apart, within a cluster; () where rows are events.
        version: raised when a column changes its meaning or goes.
    """

    name: str
    grain: str
    time: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    version: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """Column names, in order."""
        return tuple(column.name for column in self.columns)


PARTITIONS = ("cluster", "date")


def _text(name: str, doc: str, *, nullable: bool = False) -> Column:
    return Column(name, Kind.STRING, doc, nullable)


def _count(name: str, doc: str, *, nullable: bool = False) -> Column:
    return Column(name, Kind.INT, doc, nullable)


def _seconds(name: str, doc: str, *, nullable: bool = False) -> Column:
    return Column(name, Kind.FLOAT, f"{doc}, seconds", nullable)


def _flag(name: str, doc: str) -> Column:
    return Column(name, Kind.BOOL, doc, nullable=True)


def _time(name: str, doc: str) -> Column:
    return Column(name, Kind.TIME, doc)


_STREAM = (
    _text("probe", "confirm, delivery, ..."),
    _text("stream", "what tells the streams of a probe apart, such as classic or classic-large"),
    _text("queue_type", 'classic, quorum or stream; "none" where no queue takes part'),
    _text("vhost", "virtual host of the probe's queue"),
    _text("node", 'node whose queue took it; "" where that is not known'),
)

PROBE_MESSAGES = Table(
    name="probe_messages",
    grain="one message of a probe, once its outcome is known",
    time="intended_at",
    key=("run_id", "probe", "stream", "node", "epoch", "seq"),
    columns=(
        _time("intended_at", "when the schedule wanted it sent"),
        *_STREAM,
        _text("run_id", "one start of the probe process"),
        _count("epoch", "counts the probe's channels"),
        _count("seq", "delivery tag of the publish on its channel, from 1"),
        _count("delivery_mode", "1 transient, 2 persistent"),
        _count("payload_bytes", "size of the body"),
        _text("outcome", "acked, nacked, returned, undecided or lost"),
        _seconds("send_delay", "intended to sent: the probe's own error"),
        _seconds("confirm", "sent to settled", nullable=True),
        _seconds("response", "intended to settled", nullable=True),
        _flag("multiple", "the ack frame that settled it had its multiple flag set"),
        _count("group", "messages that this frame settled", nullable=True),
        _seconds("delivery", "sent to first delivery", nullable=True),
        _count("deliveries", "how often it was delivered", nullable=True),
        _flag("redelivered", "the redelivered flag of any of its deliveries"),
        _flag("out_of_order", "delivered after a later one"),
    ),
)

ACK_BURSTS = Table(
    name="ack_bursts",
    grain="ack frames of one probe channel that arrived together",
    time="at",
    key=(),
    columns=(
        _time("at", "when the first frame arrived"),
        *_STREAM,
        _text("run_id", "one start of the probe process"),
        _count("frames", "ack and nack frames"),
        _count("multiple_frames", "those with the multiple flag"),
        _count("messages", "messages that they settled"),
        _seconds("interval", "since the first frame of the burst before", nullable=True),
        _seconds("span", "first to last frame"),
    ),
)

PROBE_STEPS = Table(
    name="probe_steps",
    grain="one timed step of a probe",
    time="at",
    key=(),
    columns=(
        _time("at", "when the step began"),
        _text("probe", "handshake, rtt, redelivery, nack, ..."),
        _text("stream", "what tells the streams of a probe apart"),
        _text("vhost", "virtual host"),
        _text("node", 'node that was asked; "" where that is not known'),
        _text("run_id", "one start of the probe process"),
        _text("step", "what was timed, such as tcp, declare, requeue, dead-letter"),
        _seconds("seconds", "how long it took", nullable=True),
        _flag("ok", "it ended as it should"),
        _text("reason", "why not", nullable=True),
    ),
)

QUEUE_SAMPLES = Table(
    name="queue_samples",
    grain="one queue at one poll",
    time="at",
    key=("at", "vhost", "queue"),
    columns=(
        _time("at", "when the broker's answer was complete"),
        _text("vhost", "virtual host"),
        _text("queue", "queue name"),
        _text("queue_type", "classic, quorum, stream", nullable=True),
        _count("messages_ready", "messages waiting", nullable=True),
        _count("messages_unacked", "messages delivered and not acknowledged", nullable=True),
        _count("consumers", "consumers", nullable=True),
        _count("publish", "messages published, counter since the queue exists", nullable=True),
        _count("deliver", "messages delivered or got, counter", nullable=True),
        _count("ack", "messages acknowledged, counter", nullable=True),
        _count("redeliver", "messages redelivered, counter", nullable=True),
    ),
)

LANDING = {table.name: table for table in (PROBE_MESSAGES, ACK_BURSTS, PROBE_STEPS, QUEUE_SAMPLES)}
"""Written by the exporter, read by Spark."""

MEASURES = ("confirm", "response", "delivery", "send_delay")
"""The durations of `probe_messages` that are rolled up, each under its own name in `latency_1m.measure`."""

OUTCOMES = ("acked", "nacked", "returned", "undecided", "lost")

_MINUTE = _time("minute", "start of the minute")

LATENCY_1M = Table(
    name="latency_1m",
    grain="one minute of one measure of one probe stream; merges by SUM of counts and sums, MAX of max",
    time="minute",
    key=("minute", "probe", "stream", "queue_type", "vhost", "node", "delivery_mode", "measure"),
    columns=(
        _MINUTE,
        *_STREAM,
        _count("delivery_mode", "1 transient, 2 persistent"),
        _text("measure", "which duration: " + ", ".join(MEASURES)),
        _text("bounds", f"version of the bucket edges, now {latency.BOUNDS_VERSION}"),
        _count("count", "messages that have this duration"),
        _seconds("sum", "sum of the durations"),
        _seconds("max", "the largest, exact"),
        *(_count(name, f"messages in bucket {index}") for index, name in enumerate(latency.COLUMNS)),
    ),
)

OUTCOMES_1M = Table(
    name="outcomes_1m",
    grain="one minute of one probe stream, by intended time",
    time="minute",
    key=("minute", "probe", "stream", "queue_type", "vhost", "node", "delivery_mode"),
    columns=(
        _MINUTE,
        *_STREAM,
        _count("delivery_mode", "1 transient, 2 persistent"),
        _count("messages", "messages meant for this minute"),
        *(_count(name, f"those that were {name}") for name in OUTCOMES),
        _count("redelivered", "those delivered with the redelivered flag"),
        _count("duplicates", "deliveries beyond the first"),
        _count("out_of_order", "those delivered after a later one"),
        _count("missing", "acked, delivery awaited, and never delivered"),
    ),
)

BURSTS_1M = Table(
    name="bursts_1m",
    grain="one minute of ack bursts of one probe stream",
    time="minute",
    key=("minute", "probe", "stream", "queue_type", "vhost", "node"),
    columns=(
        _MINUTE,
        *_STREAM,
        _count("bursts", "bursts that began in this minute"),
        _count("frames", "ack and nack frames"),
        _count("multiple_frames", "those with the multiple flag"),
        _count("messages", "messages settled"),
        _count("messages_max", "messages of the largest burst"),
        _seconds("interval_sum", "sum of the intervals between bursts"),
        _count("interval_count", "bursts that have an interval"),
        _seconds("interval_max", "the longest interval", nullable=True),
    ),
)

STEPS_1M = Table(
    name="steps_1m",
    grain="one minute of one timed step of one probe stream; merges by SUM of counts and sums, MAX of max",
    time="minute",
    key=("minute", "probe", "stream", "vhost", "node", "step"),
    columns=(
        _MINUTE,
        _text("probe", "handshake, rtt, redelivery, ..."),
        _text("stream", "what tells the streams of a probe apart"),
        _text("vhost", "virtual host"),
        _text("node", 'node that was asked; "" where that is not known'),
        _text("step", "what was timed, such as tcp, declare, requeue, dead-letter"),
        _text("bounds", f"version of the bucket edges, now {latency.BOUNDS_VERSION}"),
        _count("attempts", "steps that began in this minute"),
        _count("failures", "those that did not end as they should"),
        _count("count", "those that did, and have a duration"),
        _seconds("sum", "sum of their durations"),
        _seconds("max", "the longest, exact", nullable=True),
        *(_count(name, f"steps in bucket {index}") for index, name in enumerate(latency.COLUMNS)),
    ),
)

QUEUES_1M = Table(
    name="queues_1m",
    grain="one minute of one queue; counters as increases with resets handled",
    time="minute",
    key=("minute", "vhost", "queue"),
    columns=(
        _MINUTE,
        _text("vhost", "virtual host"),
        _text("queue", "queue name"),
        _text("queue_type", "classic, quorum, stream", nullable=True),
        _count("samples", "polls in this minute; a minute without polls has no row"),
        _count("messages_ready_max", "most messages waiting", nullable=True),
        _count("messages_ready_last", "messages waiting at the last poll", nullable=True),
        _count("messages_unacked_max", "most unacknowledged messages", nullable=True),
        _count("messages_unacked_last", "unacknowledged at the last poll", nullable=True),
        _count("consumers_min", "fewest consumers", nullable=True),
        _count("consumers_last", "consumers at the last poll", nullable=True),
        _count("published", "messages published in this minute", nullable=True),
        _count("delivered", "messages delivered in this minute", nullable=True),
        _count("acked", "messages acknowledged in this minute", nullable=True),
        _count("redelivered", "messages redelivered in this minute", nullable=True),
    ),
)

ROLLUPS = {table.name: table for table in (LATENCY_1M, OUTCOMES_1M, BURSTS_1M, STEPS_1M, QUEUES_1M)}
"""Written by Spark, read by the dashboard."""
