"""Landing tables: written by the exporter, read by Spark."""

from ackscope.tables.contract import Table, count, flag, seconds, text, time

STREAM = (
    text("probe", "confirm, delivery, ..."),
    text("stream", "name of the stream within the probe, such as classic or classic-large"),
    text("queue_type", 'classic, quorum or stream; "none" without a queue'),
    text("vhost", "virtual host of the probe's queue"),
    text("node", 'node of the queue; "" if unknown'),
)

PROBE_MESSAGES = Table(
    name="probe_messages",
    grain="one message of a probe, once its outcome is known",
    time="intended_at",
    key=("run_id", "probe", "stream", "node", "epoch", "seq"),
    columns=(
        time("intended_at", "scheduled send time"),
        *STREAM,
        text("run_id", "one start of the probe process"),
        count("epoch", "counts the probe's channels"),
        count("seq", "delivery tag of the publish on its channel, from 1"),
        count("delivery_mode", "1 transient, 2 persistent"),
        count("payload_bytes", "size of the body"),
        text("outcome", "acked, nacked, returned, undecided or lost"),
        seconds("send_delay", "scheduled to sent: the probe's own delay"),
        seconds("confirm", "sent to settled (acked, nacked or returned)", nullable=True),
        seconds("response", "scheduled to settled", nullable=True),
        flag("multiple", "the frame that settled it had the multiple flag"),
        count("group", "messages settled by this frame", nullable=True),
        seconds("delivery", "sent to first delivery", nullable=True),
        count("deliveries", "number of deliveries", nullable=True),
        flag("redelivered", "any of its deliveries had the redelivered flag"),
        flag("out_of_order", "delivered after a later message"),
    ),
)

ACK_BURSTS = Table(
    name="ack_bursts",
    grain="ack frames of one probe channel that arrived together",
    time="at",
    key=(),
    columns=(
        time("at", "when the first frame arrived"),
        *STREAM,
        text("run_id", "one start of the probe process"),
        count("frames", "ack and nack frames"),
        count("multiple_frames", "frames with the multiple flag"),
        count("messages", "messages settled"),
        seconds("interval", "since the first frame of the previous burst", nullable=True),
        seconds("span", "from first to last frame"),
    ),
)

PROBE_STEPS = Table(
    name="probe_steps",
    grain="one timed step of a probe",
    time="at",
    key=(),
    columns=(
        time("at", "when the step began"),
        text("probe", "handshake, rtt, redelivery, nack, ..."),
        text("stream", "name of the stream within the probe"),
        text("vhost", "virtual host"),
        text("node", 'node that was probed; "" if unknown'),
        text("run_id", "one start of the probe process"),
        text("step", "what was timed, such as tcp, declare, requeue, dead-letter"),
        seconds("seconds", "duration of the step", nullable=True),
        flag("ok", "it succeeded"),
        text("reason", "why it failed", nullable=True),
    ),
)

# Maximum seconds that a row of a table of changes holds, unless a later row repeats it.
HEARTBEAT = 600.0

# A table of changes: a queue has no row at a poll where nothing changed. The polls are those of `poll_samples` (family
# `queues`) and the times of these rows. The rules are:
# - The queue had the values of its last row at every later poll, for at most `HEARTBEAT` seconds after that row. After
# that, and without successful polls, its values are unknown.
# - A row with a change follows a row of the poll just before it, which has the old values. So the change lies between
# these two polls.
# - At a poll that is `whole` (`poll_samples`) every existing queue has a row. The exporter's first poll is whole, and
# the first one after rows could not be written to disk.
# - A tombstone (`gone` is true) ends the queue: it was deleted, or is not visible to the monitoring user any more. A
# queue that is declared between two polls has a tombstone at the poll before its first row: its counters began at zero.
# A queue without such a tombstone existed at the first whole poll.
# - Consumers and counters are as of `details_at`; a change of `details_at` alone adds no row.
# The probes' own queues are not included.
QUEUE_SAMPLES = Table(
    name="queue_samples",
    grain="one queue at one poll where something changed; repeated within HEARTBEAT",
    time="at",
    key=("at", "vhost", "queue"),
    columns=(
        time("at", "when the broker's response was complete"),
        text("vhost", "virtual host"),
        text("queue", "queue name"),
        text("queue_type", "classic, quorum, stream", nullable=True),
        count("messages_ready", "messages ready", nullable=True),
        count("messages_unacked", "messages delivered and not acknowledged", nullable=True),
        count("consumers", "consumers, as of `details_at`", nullable=True),
        count("publish", "messages published, counter since the queue was declared, as of `details_at`", nullable=True),
        count("deliver", "messages delivered or got, counter, as of `details_at`", nullable=True),
        count("ack", "messages acknowledged, counter, as of `details_at`", nullable=True),
        count("redeliver", "messages redelivered, counter, as of `details_at`", nullable=True),
        time("details_at", "when consumers and counters were read; null: same as `at`", nullable=True),
        flag("gone", "true: the queue did not exist at `at`; all columns except the key are null"),
    ),
    version=2,
)

# A table of changes like `QUEUE_SAMPLES`, of the followed channels: at most `landing.max_channels`, first those with
# unacknowledged messages or redeliveries, then those that only changed. Nothing is known about a channel without a row,
# because it is not followed; a tombstone means that it is no longer followed.
CHANNEL_SAMPLES = Table(
    name="channel_samples",
    grain="one followed channel at one poll where something changed; repeated within HEARTBEAT",
    time="at",
    key=("at", "channel"),
    columns=(
        time("at", "when the broker's response was complete"),
        text("channel", "name as in the broker: peer:port -> host:port (number)"),
        text("connection", "name of its connection", nullable=True),
        text("vhost", "virtual host", nullable=True),
        text("user", "user of the connection", nullable=True),
        text("node", "node of the channel", nullable=True),
        text("state", "running, flow, blocked, ...", nullable=True),
        count("prefetch_count", "last basic.qos of the channel; 0: unlimited", nullable=True),
        count("consumers", "consumers on it", nullable=True),
        count("messages_unacked", "messages delivered and not acknowledged", nullable=True),
        count("messages_unconfirmed", "messages published and not confirmed", nullable=True),
        count("publish", "messages published, counter", nullable=True),
        count("confirm", "messages confirmed, counter", nullable=True),
        count("deliver", "messages delivered or got, counter", nullable=True),
        count("ack", "messages acknowledged, counter", nullable=True),
        count("redeliver", "messages redelivered, counter", nullable=True),
        flag("gone", "true: closed, or not followed any more; all columns except the key are null"),
    ),
)

# A table of changes like `QUEUE_SAMPLES`, of the followed consumers: at most `landing.max_consumers`, first inactive
# ones, then those that are new or changed.
CONSUMER_SAMPLES = Table(
    name="consumer_samples",
    grain="one followed consumer at one poll where something changed; repeated within HEARTBEAT",
    time="at",
    key=("at", "vhost", "queue", "tag", "channel"),
    columns=(
        time("at", "when the broker's response was complete"),
        text("vhost", "virtual host"),
        text("queue", "queue that it consumes from"),
        text("tag", "consumer tag"),
        text("channel", 'name of its channel; "" if unknown'),
        text("connection", "name of its connection", nullable=True),
        text("user", "user of the connection", nullable=True),
        text("node", "node of its channel", nullable=True),
        count("prefetch_count", "maximum unacknowledged deliveries; 0: unlimited", nullable=True),
        flag("ack_required", "false: automatic acknowledgement"),
        flag("active", "the broker delivers messages to it"),
        text("activity_status", "up, single_active, waiting, suspected_down, ...", nullable=True),
        flag("gone", "true: cancelled, or not followed any more; all columns except the key are null"),
    ),
)

NODE_SAMPLES = Table(
    name="node_samples",
    grain="one node at one poll, at most every 15 s",
    time="at",
    key=("at", "node"),
    columns=(
        time("at", "when the broker's response was complete"),
        text("node", "name of the node"),
        flag("running", "it is a running member of the cluster"),
        flag("being_drained", "it is in maintenance mode"),
        count("mem_used", "bytes of memory", nullable=True),
        count("mem_limit", "memory alarm threshold, bytes", nullable=True),
        flag("mem_alarm", "the memory alarm is in force"),
        count("disk_free", "bytes", nullable=True),
        count("disk_free_limit", "disk alarm threshold, bytes", nullable=True),
        flag("disk_free_alarm", "the disk alarm is in force"),
        count("fd_used", "file descriptors", nullable=True),
        count("fd_total", "file descriptor limit", nullable=True),
        count("sockets_used", "sockets", nullable=True),
        count("sockets_total", "socket limit", nullable=True),
        count("proc_used", "Erlang processes", nullable=True),
        count("proc_total", "Erlang process limit", nullable=True),
        count("run_queue", "Erlang run queue: processes that are waiting for a core", nullable=True),
        count("partitions", "nodes that it is partitioned from", nullable=True),
        seconds("uptime_seconds", "since it started", nullable=True),
    ),
)

POLL_SAMPLES = Table(
    name="poll_samples",
    grain="one successful poll of one endpoint family; or a failed one, repeated every minute while it fails",
    time="at",
    key=("at", "family"),
    columns=(
        time("at", "when the response was complete, as in the samples; for failures, when it was known"),
        text("family", "overview, nodes, queues, ..."),
        flag("success", "the poll succeeded"),
        seconds("took", "duration of a successful poll", nullable=True),
        seconds("age", "time since the last successful poll; null without one", nullable=True),
        count("objects", "number of objects in the response; null if it is not a list", nullable=True),
        count("gaps", "fields of the response that could not be decoded", nullable=True),
        flag("whole", "every existing object has a row in its table of changes"),
        text("reason", "why it failed", nullable=True),
    ),
)

# While a rule is inconclusive, its findings do not end; they stay as they were until it can be evaluated.
FINDING_EVENTS = Table(
    name="finding_events",
    grain="one finding that was active at the exporter's start, began, changed its severity, or ended",
    time="at",
    key=("at", "rule", "kind", "vhost", "name"),
    columns=(
        time("at", "time of the diagnosis"),
        text("rule", "stable name of the rule"),
        text("event", "found (active at the exporter's start), began, changed, ended"),
        text("severity", "critical, warning or info; for an ended finding, its last"),
        text("severity_before", "previous severity of a changed finding", nullable=True),
        text("kind", "cluster, node, queue, connection, channel, consumer, exchange, vhost or probe"),
        text("vhost", 'virtual host; "" if the subject has none'),
        text("name", "name of the subject"),
        text("node", "its node", nullable=True),
        text("since", "start of the evidence, ISO 8601", nullable=True),
        text("summary", "who is affected, and how", nullable=True),
    ),
)

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
