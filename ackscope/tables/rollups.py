"""What Spark makes of what was landed: minutes, hours and days, for the dashboard."""

from ackscope import latency
from ackscope.tables.contract import Column, Merge, Table, coarser, count, seconds, text, time
from ackscope.tables.landing import STREAM

MEASURES = ("confirm", "response", "delivery", "send_delay")
"""The durations of `probe_messages` that are rolled up, each under its own name in `latency_1m.measure`."""

OUTCOMES = ("acked", "nacked", "returned", "undecided", "lost")

_MINUTE = time("minute", "start of the minute")
_BOUNDS = text("bounds", f"version of the bucket edges, now {latency.BOUNDS_VERSION}", merge=Merge.SAME)
_MODE = count("delivery_mode", "1 transient, 2 persistent")


def _sum(name: str, doc: str, *, nullable: bool = False) -> Column:
    return count(name, doc, nullable=nullable, merge=Merge.SUM)


def _most(name: str, doc: str) -> Column:
    return count(name, doc, nullable=True, merge=Merge.MAX)


def _least(name: str, doc: str) -> Column:
    return count(name, doc, nullable=True, merge=Merge.MIN)


def _last(name: str, doc: str) -> Column:
    return count(name, doc, nullable=True, merge=Merge.LAST)


def _said(name: str, doc: str) -> Column:
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
        _sum("count", "messages that have this duration"),
        seconds("sum", "sum of the durations", merge=Merge.SUM),
        seconds("max", "the largest, exact", merge=Merge.MAX),
        *_buckets("messages"),
    ),
)

OUTCOMES_1M = Table(
    name="outcomes_1m",
    grain="one minute of one probe stream, by intended time",
    time="minute",
    key=("minute", "probe", "stream", "queue_type", "vhost", "node", "delivery_mode"),
    columns=(
        _MINUTE,
        *STREAM,
        _MODE,
        _sum("messages", "messages meant for this minute"),
        *(_sum(name, f"those that were {name}") for name in OUTCOMES),
        _sum("redelivered", "those delivered with the redelivered flag"),
        _sum("duplicates", "deliveries beyond the first"),
        _sum("out_of_order", "those delivered after a later one"),
        _sum("missing", "acked, delivery awaited, and never delivered"),
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
        _sum("multiple_frames", "those with the multiple flag"),
        _sum("messages", "messages settled"),
        count("messages_max", "messages of the largest burst", merge=Merge.MAX),
        seconds("interval_sum", "sum of the intervals between bursts", merge=Merge.SUM),
        _sum("interval_count", "bursts that have an interval"),
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
        text("stream", "what tells the streams of a probe apart"),
        text("vhost", "virtual host"),
        text("node", 'node that was asked; "" where that is not known'),
        text("step", "what was timed, such as tcp, declare, requeue, dead-letter"),
        _BOUNDS,
        _sum("attempts", "steps that began in this minute"),
        _sum("failures", "those that did not end as they should"),
        _sum("count", "those that did, and have a duration"),
        seconds("sum", "sum of their durations", merge=Merge.SUM),
        seconds("max", "the longest, exact", nullable=True, merge=Merge.MAX),
        *_buckets("steps"),
    ),
)

QUEUES_1M = Table(
    name="queues_1m",
    grain="one minute of one queue; counters as increases with resets handled",
    time="minute",
    key=("minute", "vhost", "queue"),
    columns=(
        _MINUTE,
        text("vhost", "virtual host"),
        text("queue", "queue name"),
        _said("queue_type", "classic, quorum, stream"),
        _sum("samples", "polls of this minute at which the queue was known; 0: only increases over a gap are"),
        _most("messages_ready_max", "most messages waiting"),
        _last("messages_ready_last", "messages waiting at the last poll"),
        _most("messages_unacked_max", "most unacknowledged messages"),
        _last("messages_unacked_last", "unacknowledged at the last poll"),
        _least("consumers_min", "fewest consumers"),
        _last("consumers_last", "consumers at the last poll"),
        _sum("published", "messages published in this minute", nullable=True),
        _sum("delivered", "messages delivered in this minute", nullable=True),
        _sum("acked", "messages acknowledged in this minute", nullable=True),
        _sum("redelivered", "messages redelivered in this minute", nullable=True),
        _sum("busy", "1 where something was published in this minute, 0 where nothing was", nullable=True),
    ),
    version=2,
)
"""A minute without polls has no levels. An increase between two samples is spread evenly over the time between them."""

CHANNELS_1M = Table(
    name="channels_1m",
    grain="one minute of one channel that was followed; counters as increases with resets handled",
    time="minute",
    key=("minute", "channel"),
    columns=(
        _MINUTE,
        text("channel", "as the broker spells it"),
        _said("connection", "name of its connection"),
        _said("vhost", "virtual host"),
        _said("user", "who opened it"),
        _said("node", "node that it is on"),
        _sum("samples", "polls of this minute at which the channel was followed"),
        _sum("limited", "those at which it had consumers and a prefetch limit"),
        _sum("at_ceiling", "those at which as many were unacknowledged as the prefetch allows all its consumers"),
        _last("prefetch_last", "prefetch at the last poll; 0 is no limit"),
        _most("unacked_max", "most unacknowledged messages"),
        _last("unacked_last", "unacknowledged at the last poll"),
        _most("unconfirmed_max", "most messages published and not confirmed"),
        _last("unconfirmed_last", "published and not confirmed at the last poll"),
        _sum("published", "messages published in this minute", nullable=True),
        _sum("confirmed", "messages confirmed in this minute", nullable=True),
        _sum("delivered", "messages delivered in this minute", nullable=True),
        _sum("acked", "messages acknowledged in this minute", nullable=True),
        _sum("redelivered", "messages redelivered in this minute", nullable=True),
    ),
)

CONSUMERS_1M = Table(
    name="consumers_1m",
    grain="one minute of one consumer that was followed",
    time="minute",
    key=("minute", "vhost", "queue", "tag", "channel"),
    columns=(
        _MINUTE,
        text("vhost", "virtual host"),
        text("queue", "queue that it consumes from"),
        text("tag", "consumer tag"),
        text("channel", 'name of its channel, as in `channels_1m`; "" where that is not told'),
        _said("connection", "name of its connection"),
        _said("user", "who opened it"),
        _said("node", "node of its channel"),
        _sum("samples", "polls of this minute at which the consumer was followed"),
        _sum("inactive", "those at which it was not to get messages"),
        _sum("automatic", "those at which it acknowledged automatically"),
        _last("prefetch_last", "its prefetch at the last poll; 0 is no limit"),
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
        _sum("down", "those at which it did not run"),
        _sum("drained", "those at which it was in maintenance mode"),
        _sum("mem_alarms", "those at which the memory alarm was in force"),
        _sum("disk_alarms", "those at which the disk alarm was in force"),
        _most("partitions_max", "most nodes that it was partitioned from"),
        _most("mem_used_max", "most bytes of memory"),
        _last("mem_used_last", "bytes of memory at the last sample"),
        _last("mem_limit_last", "bytes at which the memory alarm goes off"),
        _least("disk_free_min", "fewest bytes free"),
        _last("disk_free_last", "bytes free at the last sample"),
        _last("disk_free_limit_last", "bytes below which the disk alarm goes off"),
        _most("fd_used_max", "most file descriptors"),
        _last("fd_total_last", "file descriptors that it may have"),
        _most("sockets_used_max", "most sockets"),
        _last("sockets_total_last", "sockets that it may have"),
        _most("proc_used_max", "most Erlang processes"),
        _last("proc_total_last", "Erlang processes that it may have"),
        _most("run_queue_max", "most Erlang processes that waited for a core"),
        seconds("uptime_min", "shortest time since it started", nullable=True, merge=Merge.MIN),
    ),
)

POLLS_1M = Table(
    name="polls_1m",
    grain="one minute of the readings of one family of the management API",
    time="minute",
    key=("minute", "family"),
    columns=(
        _MINUTE,
        text("family", "overview, nodes, queues, ..."),
        _sum("reads", "good readings that ended in this minute"),
        _sum("failures", "failures that were told in this minute; one that goes on is told once a minute"),
        seconds("took_sum", "sum of how long the good ones took", merge=Merge.SUM),
        seconds("took_max", "the longest", nullable=True, merge=Merge.MAX),
        seconds("age_max", "the longest time since a good reading, of those told", nullable=True, merge=Merge.MAX),
        _last("objects_last", "objects of the last good reading"),
        _sum("gaps", "fields that could not be used", nullable=True),
        _sum("wholes", "good readings of which each object has a row: the exporter began to look, or began anew"),
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

HOURS = {name: coarser(table, "hour", "_1h") for name, table in MINUTES.items()}
"""By the name of the table of minutes that each is made of."""

DAYS = {name: coarser(table, "day", "_1d") for name, table in MINUTES.items()}
"""By the name of the table of minutes, too; made of hours."""
