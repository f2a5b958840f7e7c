"""What the exporter lands, for Spark to read."""

from ackscope.tables.contract import Table, count, flag, seconds, text, time

STREAM = (
    text("probe", "confirm, delivery, ..."),
    text("stream", "what tells the streams of a probe apart, such as classic or classic-large"),
    text("queue_type", 'classic, quorum or stream; "none" where no queue takes part'),
    text("vhost", "virtual host of the probe's queue"),
    text("node", 'node whose queue took it; "" where that is not known'),
)

PROBE_MESSAGES = Table(
    name="probe_messages",
    grain="one message of a probe, once its outcome is known",
    time="intended_at",
    key=("run_id", "probe", "stream", "node", "epoch", "seq"),
    columns=(
        time("intended_at", "when the schedule wanted it sent"),
        *STREAM,
        text("run_id", "one start of the probe process"),
        count("epoch", "counts the probe's channels"),
        count("seq", "delivery tag of the publish on its channel, from 1"),
        count("delivery_mode", "1 transient, 2 persistent"),
        count("payload_bytes", "size of the body"),
        text("outcome", "acked, nacked, returned, undecided or lost"),
        seconds("send_delay", "intended to sent: the probe's own error"),
        seconds("confirm", "sent to settled", nullable=True),
        seconds("response", "intended to settled", nullable=True),
        flag("multiple", "the ack frame that settled it had its multiple flag set"),
        count("group", "messages that this frame settled", nullable=True),
        seconds("delivery", "sent to first delivery", nullable=True),
        count("deliveries", "how often it was delivered", nullable=True),
        flag("redelivered", "the redelivered flag of any of its deliveries"),
        flag("out_of_order", "delivered after a later one"),
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
        count("multiple_frames", "those with the multiple flag"),
        count("messages", "messages that they settled"),
        seconds("interval", "since the first frame of the burst before", nullable=True),
        seconds("span", "first to last frame"),
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
        text("stream", "what tells the streams of a probe apart"),
        text("vhost", "virtual host"),
        text("node", 'node that was asked; "" where that is not known'),
        text("run_id", "one start of the probe process"),
        text("step", "what was timed, such as tcp, declare, requeue, dead-letter"),
        seconds("seconds", "how long it took", nullable=True),
        flag("ok", "it ended as it should"),
        text("reason", "why not", nullable=True),
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
        time("at", "when the broker's answer was complete"),
        text("vhost", "virtual host"),
        text("queue", "queue name"),
        text("queue_type", "classic, quorum, stream", nullable=True),
        count("messages_ready", "messages waiting", nullable=True),
        count("messages_unacked", "messages delivered and not acknowledged", nullable=True),
        count("consumers", "consumers, as of `details_at`", nullable=True),
        count("publish", "messages published, counter since the queue exists, as of `details_at`", nullable=True),
        count("deliver", "messages delivered or got, counter, as of `details_at`", nullable=True),
        count("ack", "messages acknowledged, counter, as of `details_at`", nullable=True),
        count("redeliver", "messages redelivered, counter, as of `details_at`", nullable=True),
        time("details_at", "when consumers and counters were read; null: at `at`", nullable=True),
        flag("gone", "true: at `at` the broker did not show this queue; only its key is told"),
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
        time("at", "when the broker's answer was complete"),
        text("channel", "as the broker spells it: peer:port -> host:port (number)"),
        text("connection", "name of its connection", nullable=True),
        text("vhost", "virtual host", nullable=True),
        text("user", "who opened it", nullable=True),
        text("node", "node that it is on", nullable=True),
        text("state", "running, flow, blocked, ...", nullable=True),
        count("prefetch_count", "last basic.qos of the channel; 0 is no limit", nullable=True),
        count("consumers", "consumers on it", nullable=True),
        count("messages_unacked", "messages delivered and not acknowledged", nullable=True),
        count("messages_unconfirmed", "messages published and not confirmed", nullable=True),
        count("publish", "messages published, counter", nullable=True),
        count("confirm", "messages confirmed, counter", nullable=True),
        count("deliver", "messages delivered or got, counter", nullable=True),
        count("ack", "messages acknowledged, counter", nullable=True),
        count("redeliver", "messages redelivered, counter", nullable=True),
        flag("gone", "true: closed, or followed no more; only its key is told"),
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
        time("at", "when the broker's answer was complete"),
        text("vhost", "virtual host"),
        text("queue", "queue that it consumes from"),
        text("tag", "consumer tag"),
        text("channel", 'name of its channel; "" where that is not told'),
        text("connection", "name of its connection", nullable=True),
        text("user", "who opened it", nullable=True),
        text("node", "node of its channel", nullable=True),
        count("prefetch_count", "deliveries that it may hold unacknowledged; 0 is no limit", nullable=True),
        flag("ack_required", "false: automatic acknowledgement"),
        flag("active", "it may get messages"),
        text("activity_status", "up, single_active, waiting, suspected_down, ...", nullable=True),
        flag("gone", "true: cancelled, or followed no more; only its key is told"),
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
        time("at", "when the broker's answer was complete"),
        text("node", "name of the node"),
        flag("running", "it takes part in the cluster"),
        flag("being_drained", "it is in maintenance mode"),
        count("mem_used", "bytes of memory", nullable=True),
        count("mem_limit", "bytes at which the memory alarm goes off", nullable=True),
        flag("mem_alarm", "the memory alarm is in force"),
        count("disk_free", "bytes", nullable=True),
        count("disk_free_limit", "bytes below which the disk alarm goes off", nullable=True),
        flag("disk_free_alarm", "the disk alarm is in force"),
        count("fd_used", "file descriptors", nullable=True),
        count("fd_total", "file descriptors that it may have", nullable=True),
        count("sockets_used", "sockets", nullable=True),
        count("sockets_total", "sockets that it may have", nullable=True),
        count("proc_used", "Erlang processes", nullable=True),
        count("proc_total", "Erlang processes that it may have", nullable=True),
        count("run_queue", "Erlang processes that wait for a core", nullable=True),
        count("partitions", "nodes that it is partitioned from", nullable=True),
        seconds("uptime_seconds", "since it started", nullable=True),
    ),
)

POLL_SAMPLES = Table(
    name="poll_samples",
    grain="one good reading of one family of the management API; or a failure, again each minute while it goes on",
    time="at",
    key=("at", "family"),
    columns=(
        time("at", "of a good reading: when it was complete, as in the samples; of another: when it was known"),
        text("family", "overview, nodes, queues, ..."),
        flag("success", "it was read whole"),
        seconds("took", "how long a good reading took", nullable=True),
        seconds("age", "since the last good reading, when this was known; null without one", nullable=True),
        count("objects", "objects that a good reading held; null where it is no list", nullable=True),
        count("gaps", "fields of a good reading that could not be used", nullable=True),
        flag("whole", "every object of it has a row in its table of changes: what has none was not there"),
        text("reason", "why it failed", nullable=True),
    ),
)

FINDING_EVENTS = Table(
    name="finding_events",
    grain="one finding that was there at the first look, began, changed its severity, or ended",
    time="at",
    key=("at", "rule", "kind", "vhost", "name"),
    columns=(
        time("at", "when diagnosis saw it"),
        text("rule", "stable name of the rule"),
        text("event", "found (there at the exporter's first look), began, changed, ended"),
        text("severity", "critical, warning or info; of an ended one, its last"),
        text("severity_before", "of a changed one", nullable=True),
        text("kind", "cluster, node, queue, connection, channel, consumer, exchange, vhost or probe"),
        text("vhost", 'virtual host; "" where the subject has none'),
        text("name", "name of the subject"),
        text("node", "its node", nullable=True),
        text("since", "ISO 8601: since when the evidence is seen", nullable=True),
        text("summary", "who suffers, and how", nullable=True),
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
