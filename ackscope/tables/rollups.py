"""Rollup tables: minutes, hours and days, written by Spark, read by the dashboard."""

from ackscope import latency
from ackscope.tables.contract import Column, Merge, Table, coarser, count, seconds, text, time
from ackscope.tables.landing import STREAM

# The durations of `probe_messages` that are rolled up, each under its own name in `latency_1m.measure`.
MEASURES = ("confirm", "response", "delivery", "send_delay")

OUTCOMES = ("acked", "nacked", "returned", "undecided", "lost")

_MINUTE = time("minute", "start of the minute")
_BOUNDS = text("bounds", f"version of the bucket edges, currently {latency.BOUNDS_VERSION}", merge=Merge.SAME)
_MODE = count("delivery_mode", "1 transient, 2 persistent")


def _sum(name: str, doc: str, *, nullable: bool = False) -> Column:
    return count(name, doc, nullable=nullable, merge=Merge.SUM)


def _max(name: str, doc: str) -> Column:
    return count(name, doc, nullable=True, merge=Merge.MAX)


def _min(name: str, doc: str) -> Column:
    return count(name, doc, nullable=True, merge=Merge.MIN)


def _last(name: str, doc: str) -> Column:
    return count(name, doc, nullable=True, merge=Merge.LAST)


def _text(name: str, doc: str) -> Column:
    return text(name, doc, nullable=True, merge=Merge.LAST)


def _buckets(what: str) -> tuple[Column, ...]:
    return tuple(_sum(name, f"{what} in bucket {index}") for index, name in enumerate(latency.COLUMNS))


LATENCY_1M = Table(
    name="latency_1m",
    grain="one minute of one measure of one probe stream",
    time="minute",
    key=("minute", "probe", "stream", "queue_type", "vhost", "node", "delivery_mode", "measure"),
    columns=(
        _MINUTE,
        *STREAM,
        _MODE,
        text("measure", "which duration: " + ", ".join(MEASURES)),
        _BOUNDS,
        _sum("count", "number of messages with this duration"),
        seconds("sum", "sum of the durations", merge=Merge.SUM),
        seconds("max", "the largest duration, exact", merge=Merge.MAX),
        *_buckets("messages"),
    ),
)

OUTCOMES_1M = Table(
    name="outcomes_1m",
    grain="one minute of one probe stream, by scheduled send time",
    time="minute",
    key=("minute", "probe", "stream", "queue_type", "vhost", "node", "delivery_mode"),
    columns=(
        _MINUTE,
        *STREAM,
        _MODE,
        _sum("messages", "messages scheduled in this minute"),
        *(_sum(name, f"messages {name}") for name in OUTCOMES),
        _sum("redelivered", "messages delivered with the redelivered flag"),
        _sum("duplicates", "deliveries beyond the first"),
        _sum("out_of_order", "messages delivered after a later one"),
        _sum("missing", "messages acked but never delivered, if a delivery was expected"),
    ),
)

BURSTS_1M = Table(
    name="bursts_1m",
    grain="one minute of ack bursts of one probe stream",
    time="minute",
    key=("minute", "probe", "stream", "queue_type", "vhost", "node"),
    columns=(
        _MINUTE,
        *STREAM,
        _sum("bursts", "bursts that began in this minute"),
        _sum("frames", "ack and nack frames"),
        _sum("multiple_frames", "frames with the multiple flag"),
        _sum("messages", "messages settled"),
        count("messages_max", "messages of the largest burst", merge=Merge.MAX),
        seconds("interval_sum", "sum of the intervals between bursts", merge=Merge.SUM),
        _sum("interval_count", "number of intervals"),
        seconds("interval_max", "the longest interval", nullable=True, merge=Merge.MAX),
    ),
)

STEPS_1M = Table(
    name="steps_1m",
    grain="one minute of one timed step of one probe stream",
    time="minute",
    key=("minute", "probe", "stream", "vhost", "node", "step"),
    columns=(
        _MINUTE,
        text("probe", "handshake, rtt, redelivery, ..."),
        text("stream", "name of the stream within the probe"),
        text("vhost", "virtual host"),
        text("node", 'node that was probed; "" if unknown'),
        text("step", "what was timed, such as tcp, declare, requeue, dead-letter"),
        _BOUNDS,
        _sum("attempts", "steps that began in this minute"),
        _sum("failures", "steps that failed"),
        _sum("count", "successful steps with a duration"),
        seconds("sum", "sum of the durations", merge=Merge.SUM),
        seconds("max", "the longest duration, exact", nullable=True, merge=Merge.MAX),
        *_buckets("steps"),
    ),
)

# A minute without polls has no levels. An increase between two samples is spread evenly over the time between them.
QUEUES_1M = Table(
    name="queues_1m",
    grain="one minute of one queue; counters as increases with resets handled",
    time="minute",
    key=("minute", "vhost", "queue"),
    columns=(
        _MINUTE,
        text("vhost", "virtual host"),
        text("queue", "queue name"),
        _text("queue_type", "classic, quorum, stream"),
        _sum("samples", "polls of this minute at which the queue was known; 0: only increases over a gap are known"),
        _max("messages_ready_max", "maximum messages ready"),
        _last("messages_ready_last", "messages ready at the last poll"),
        _max("messages_unacked_max", "maximum unacknowledged messages"),
        _last("messages_unacked_last", "unacknowledged messages at the last poll"),
        _min("consumers_min", "minimum consumers"),
        _last("consumers_last", "consumers at the last poll"),
        _sum("published", "messages published in this minute", nullable=True),
        _sum("delivered", "messages delivered in this minute", nullable=True),
        _sum("acked", "messages acknowledged in this minute", nullable=True),
        _sum("redelivered", "messages redelivered in this minute", nullable=True),
        _sum("busy", "1 if messages were published in this minute, else 0", nullable=True),
    ),
    version=2,
)

CHANNELS_1M = Table(
    name="channels_1m",
    grain="one minute of one followed channel; counters as increases with resets handled",
    time="minute",
    key=("minute", "channel"),
    columns=(
        _MINUTE,
        text("channel", "name as in the broker"),
        _text("connection", "name of its connection"),
        _text("vhost", "virtual host"),
        _text("user", "user of the connection"),
        _text("node", "node of the channel"),
        _sum("samples", "polls of this minute at which the channel was followed"),
        _sum("limited", "polls at which it had consumers and a prefetch limit"),
        _sum("at_ceiling", "polls at which unacknowledged messages filled the prefetch of all its consumers"),
        _last("prefetch_last", "prefetch at the last poll; 0: unlimited"),
        _max("unacked_max", "maximum unacknowledged messages"),
        _last("unacked_last", "unacknowledged messages at the last poll"),
        _max("unconfirmed_max", "maximum unconfirmed messages"),
        _last("unconfirmed_last", "unconfirmed messages at the last poll"),
        _sum("published", "messages published in this minute", nullable=True),
        _sum("confirmed", "messages confirmed in this minute", nullable=True),
        _sum("delivered", "messages delivered in this minute", nullable=True),
        _sum("acked", "messages acknowledged in this minute", nullable=True),
        _sum("redelivered", "messages redelivered in this minute", nullable=True),
    ),
)

CONSUMERS_1M = Table(
    name="consumers_1m",
    grain="one minute of one followed consumer",
    time="minute",
    key=("minute", "vhost", "queue", "tag", "channel"),
    columns=(
        _MINUTE,
        text("vhost", "virtual host"),
        text("queue", "queue that it consumes from"),
        text("tag", "consumer tag"),
        text("channel", 'name of its channel, as in `channels_1m`; "" if unknown'),
        _text("connection", "name of its connection"),
        _text("user", "user of the connection"),
        _text("node", "node of its channel"),
        _sum("samples", "polls of this minute at which the consumer was followed"),
        _sum("inactive", "polls at which the broker did not deliver to it"),
        _sum("automatic", "polls at which it used automatic acknowledgement"),
        _last("prefetch_last", "its prefetch at the last poll; 0: unlimited"),
    ),
)

NODES_1M = Table(
    name="nodes_1m",
    grain="one minute of one node",
    time="minute",
    key=("minute", "node"),
    columns=(
        _MINUTE,
        text("node", "name of the node"),
        _sum("samples", "samples of this minute"),
        _sum("down", "samples at which it was not running"),
        _sum("drained", "samples at which it was in maintenance mode"),
        _sum("mem_alarms", "samples with a memory alarm"),
        _sum("disk_alarms", "samples with a disk alarm"),
        _max("partitions_max", "maximum nodes that it was partitioned from"),
        _max("mem_used_max", "maximum memory used, bytes"),
        _last("mem_used_last", "memory used at the last sample, bytes"),
        _last("mem_limit_last", "memory alarm threshold, bytes"),
        _min("disk_free_min", "minimum free disk, bytes"),
        _last("disk_free_last", "free disk at the last sample, bytes"),
        _last("disk_free_limit_last", "disk alarm threshold, bytes"),
        _max("fd_used_max", "maximum file descriptors used"),
        _last("fd_total_last", "file descriptor limit"),
        _max("sockets_used_max", "maximum sockets used"),
        _last("sockets_total_last", "socket limit"),
        _max("proc_used_max", "maximum Erlang processes"),
        _last("proc_total_last", "Erlang process limit"),
        _max("run_queue_max", "maximum Erlang run queue"),
        seconds("uptime_min", "shortest time since it started", nullable=True, merge=Merge.MIN),
    ),
)

POLLS_1M = Table(
    name="polls_1m",
    grain="one minute of polls of one endpoint family",
    time="minute",
    key=("minute", "family"),
    columns=(
        _MINUTE,
        text("family", "overview, nodes, queues, ..."),
        _sum("reads", "successful polls that ended in this minute"),
        _sum("failures", "failed polls in this minute; a continuing failure counts once per minute"),
        seconds("took_sum", "sum of the durations of successful polls", merge=Merge.SUM),
        seconds("took_max", "the longest", nullable=True, merge=Merge.MAX),
        seconds("age_max", "the longest time since a successful poll", nullable=True, merge=Merge.MAX),
        _last("objects_last", "number of objects in the last successful poll"),
        _sum("gaps", "fields that could not be decoded", nullable=True),
        _sum("wholes", "polls at which every object has a row: the exporter started, or resent everything"),
    ),
)

MINUTES = {
    table.name: table
    for table in (
        LATENCY_1M,
        OUTCOMES_1M,
        BURSTS_1M,
        STEPS_1M,
        QUEUES_1M,
        CHANNELS_1M,
        CONSUMERS_1M,
        NODES_1M,
        POLLS_1M,
    )
}

# By the name of the table of minutes from which each is downsampled.
HOURS = {name: coarser(table, "hour", "_1h") for name, table in MINUTES.items()}

# By the name of the table of minutes as well, but downsampled from hours.
DAYS = {name: coarser(table, "day", "_1d") for name, table in MINUTES.items()}
