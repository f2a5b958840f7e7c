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


def _time(name: str, doc: str, *, nullable: bool = False) -> Column:
    return Column(name, Kind.TIME, doc, nullable)


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

HEARTBEAT = 600.0
"""Seconds: what a row of a table of changes says holds no longer than this, unless a later row says so again."""

QUEUE_SAMPLES = Table(
    name="queue_samples",
    grain="one queue at one poll, where something changed; and again within HEARTBEAT",
    time="at",
    key=("at", "vhost", "queue"),
    columns=(
        _time("at", "when the broker's answer was complete"),
        _text("vhost", "virtual host"),
        _text("queue", "queue name"),
        _text("queue_type", "classic, quorum, stream", nullable=True),
        _count("messages_ready", "messages waiting", nullable=True),
        _count("messages_unacked", "messages delivered and not acknowledged", nullable=True),
        _count("consumers", "consumers, as of `details_at`", nullable=True),
        _count("publish", "messages published, counter since the queue exists, as of `details_at`", nullable=True),
        _count("deliver", "messages delivered or got, counter, as of `details_at`", nullable=True),
        _count("ack", "messages acknowledged, counter, as of `details_at`", nullable=True),
        _count("redeliver", "messages redelivered, counter, as of `details_at`", nullable=True),
        _time("details_at", "when consumers and counters were read; null: at `at`", nullable=True),
        _flag("gone", "true: at `at` the broker did not show this queue; only its key is told"),
    ),
    version=2,
)
"""A table of changes. Between two polls that landed (`poll_samples` of family `queues`, and the times of these rows)
the absence of a row means:

- the queue was as in its last row, at every poll since, for at most `HEARTBEAT` seconds after that row; after that,
  nothing is known of it. Where no poll succeeded, nothing is known either.
- Before a row that tells a change stands one of the poll just before, with the old values, unless the last row is of
  that poll anyway: what changed did so between two polls.
- At a poll that is `whole` (`poll_samples`) every queue has a row: what has none was not there, or not any more. The
  exporter's first poll is whole, and one after rows were lost because the disk did not take them.
- A row whose `gone` is true ends the queue: removed, or no more shown to the monitoring user. A queue that appears
  between two polls has such a row at the poll before its first: its counters began at zero. A queue without one
  was there at the first whole poll.
- Consumers and counters are as of `details_at`; that it alone moved on is no change and makes no row.

The probes' own queues are left out.
"""

CHANNEL_SAMPLES = Table(
    name="channel_samples",
    grain="one channel that matters at one poll, where something changed; and again within HEARTBEAT",
    time="at",
    key=("at", "channel"),
    columns=(
        _time("at", "when the broker's answer was complete"),
        _text("channel", "as the broker spells it: peer:port -> host:port (number)"),
        _text("connection", "name of its connection", nullable=True),
        _text("vhost", "virtual host", nullable=True),
        _text("user", "who opened it", nullable=True),
        _text("node", "node that it is on", nullable=True),
        _text("state", "running, flow, blocked, ...", nullable=True),
        _count("prefetch_count", "last basic.qos of the channel; 0 is no limit", nullable=True),
        _count("consumers", "consumers on it", nullable=True),
        _count("messages_unacked", "messages delivered and not acknowledged", nullable=True),
        _count("messages_unconfirmed", "messages published and not confirmed", nullable=True),
        _count("publish", "messages published, counter", nullable=True),
        _count("confirm", "messages confirmed, counter", nullable=True),
        _count("deliver", "messages delivered or got, counter", nullable=True),
        _count("ack", "messages acknowledged, counter", nullable=True),
        _count("redeliver", "messages redelivered, counter", nullable=True),
        _flag("gone", "true: closed, or followed no more; only its key is told"),
    ),
)
"""A table of changes, as `QUEUE_SAMPLES`, of the channels that are followed: those with unacknowledged messages or
redeliveries before those that only changed, and no more than `landing.max_channels`. A channel without a row was not
followed, and nothing is known of it; `gone` says that it is followed no more.
"""

CONSUMER_SAMPLES = Table(
    name="consumer_samples",
    grain="one consumer that matters at one poll, where something changed; and again within HEARTBEAT",
    time="at",
    key=("at", "vhost", "queue", "tag", "channel"),
    columns=(
        _time("at", "when the broker's answer was complete"),
        _text("vhost", "virtual host"),
        _text("queue", "queue that it consumes from"),
        _text("tag", "consumer tag"),
        _text("channel", 'name of its channel; "" where that is not told'),
        _text("connection", "name of its connection", nullable=True),
        _text("user", "who opened it", nullable=True),
        _text("node", "node of its channel", nullable=True),
        _count("prefetch_count", "deliveries that it may hold unacknowledged; 0 is no limit", nullable=True),
        _flag("ack_required", "false: automatic acknowledgement"),
        _flag("active", "it may get messages"),
        _text("activity_status", "up, single_active, waiting, suspected_down, ...", nullable=True),
        _flag("gone", "true: cancelled, or followed no more; only its key is told"),
    ),
)
"""A table of changes, as `QUEUE_SAMPLES`, of the consumers that are followed: those that are not active before those
that came or changed, and no more than `landing.max_consumers`."""

NODE_SAMPLES = Table(
    name="node_samples",
    grain="one node at one poll, at most every 15 s",
    time="at",
    key=("at", "node"),
    columns=(
        _time("at", "when the broker's answer was complete"),
        _text("node", "name of the node"),
        _flag("running", "it takes part in the cluster"),
        _flag("being_drained", "it is in maintenance mode"),
        _count("mem_used", "bytes of memory", nullable=True),
        _count("mem_limit", "bytes at which the memory alarm goes off", nullable=True),
        _flag("mem_alarm", "the memory alarm is in force"),
        _count("disk_free", "bytes", nullable=True),
        _count("disk_free_limit", "bytes below which the disk alarm goes off", nullable=True),
        _flag("disk_free_alarm", "the disk alarm is in force"),
        _count("fd_used", "file descriptors", nullable=True),
        _count("fd_total", "file descriptors that it may have", nullable=True),
        _count("sockets_used", "sockets", nullable=True),
        _count("sockets_total", "sockets that it may have", nullable=True),
        _count("proc_used", "Erlang processes", nullable=True),
        _count("proc_total", "Erlang processes that it may have", nullable=True),
        _count("run_queue", "Erlang processes that wait for a core", nullable=True),
        _count("partitions", "nodes that it is partitioned from", nullable=True),
        _seconds("uptime_seconds", "since it started", nullable=True),
    ),
)

POLL_SAMPLES = Table(
    name="poll_samples",
    grain="one good reading of one family of the management API; or a failure, again each minute while it goes on",
    time="at",
    key=("at", "family"),
    columns=(
        _time("at", "of a good reading: when it was complete, as in the samples; of another: when it was known"),
        _text("family", "overview, nodes, queues, ..."),
        _flag("success", "it was read whole"),
        _seconds("took", "how long a good reading took", nullable=True),
        _seconds("age", "since the last good reading, when this was known; null without one", nullable=True),
        _count("objects", "objects that a good reading held; null where it is no list", nullable=True),
        _count("gaps", "fields of a good reading that could not be used", nullable=True),
        _flag("whole", "every object of it has a row in its table of changes: what has none was not there"),
        _text("reason", "why it failed", nullable=True),
    ),
)

FINDING_EVENTS = Table(
    name="finding_events",
    grain="one finding that was there at the first look, began, changed its severity, or ended",
    time="at",
    key=("at", "rule", "kind", "vhost", "name"),
    columns=(
        _time("at", "when diagnosis saw it"),
        _text("rule", "stable name of the rule"),
        _text("event", "found (there at the exporter's first look), began, changed, ended"),
        _text("severity", "critical, warning or info; of an ended one, its last"),
        _text("severity_before", "of a changed one", nullable=True),
        _text("kind", "cluster, node, queue, connection, channel, consumer, exchange, vhost or probe"),
        _text("vhost", 'virtual host; "" where the subject has none'),
        _text("name", "name of the subject"),
        _text("node", "its node", nullable=True),
        _text("since", "ISO 8601: since when the evidence is seen", nullable=True),
        _text("summary", "who suffers, and how", nullable=True),
    ),
)
"""A rule that cannot tell ends nothing: its findings stay as they were until it can."""

LANDING = {
    table.name: table
    for table in (
        PROBE_MESSAGES,
        ACK_BURSTS,
        PROBE_STEPS,
        QUEUE_SAMPLES,
        CHANNEL_SAMPLES,
        CONSUMER_SAMPLES,
        NODE_SAMPLES,
        POLL_SAMPLES,
        FINDING_EVENTS,
    )
}
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
        _count("samples", "polls of this minute at which the queue was known; 0: only increases over a gap are"),
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
    version=2,
)
"""A minute without polls has no levels. An increase between two samples is spread evenly over the time between them."""

ROLLUPS = {table.name: table for table in (LATENCY_1M, OUTCOMES_1M, BURSTS_1M, STEPS_1M, QUEUES_1M)}
"""Written by Spark, read by the dashboard."""
