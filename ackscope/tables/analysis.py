"""What Spark finds in the rollups: what is usual, what shifted, and how long each finding lasted."""

from ackscope.tables.contract import Table, count, flag, number, text, time

_KIND = text("kind", "queue, channel, consumer, node or probe; in `baselines` cluster, too: all queues together")
_VHOST = text("vhost", 'virtual host; "" where it has none')
_NAME = text(
    "name", "of a queue or node its name; of a probe `probe/stream/node`; of a channel as the broker spells it"
)
_MEASURE = text(
    "measure",
    "of a queue ready, unacked (messages), published, delivered, acked, redelivered (a second); of a probe "
    "confirm_p50, confirm_p99, delivery_p99 (seconds), failed (share of messages); of a node mem_used (bytes), ...",
)

BASELINES = Table(
    name="baselines",
    grain="what is usual of one measure of one object in one hour of the week; one file an hour of the week",
    time="made_at",
    key=("hour_of_week", "kind", "vhost", "name", "measure"),
    columns=(
        time("made_at", "until when what it was made of reaches"),
        count("hour_of_week", "0 is Monday 00:00 to 01:00 UTC, 167 the last of Sunday"),
        _KIND,
        _VHOST,
        _NAME,
        _MEASURE,
        text("scope", "hour-of-week, or hour-of-day where there are too few weeks, or not-yet"),
        count("values", "hours that it was made of"),
        number("low", "below this is unusual", nullable=True),
        number("middle", "the median", nullable=True),
        number("high", "above this is unusual", nullable=True),
        text("reason", "why not yet, such as: 3 of 7 days", nullable=True),
    ),
)

CHANGES = Table(
    name="changes",
    grain="one lasting shift of the level of one measure of one object",
    time="at",
    key=("at", "kind", "vhost", "name", "measure"),
    columns=(
        time("at", "the first minute on the new level"),
        _KIND,
        _VHOST,
        _NAME,
        _MEASURE,
        number("before", "median of the minutes before"),
        number("after", "median of the minutes after"),
        number("score", "size of the shift in robust spreads of the minutes before; the larger, the surer"),
        count("minutes", "how many minutes the new level was seen"),
        text("queue", "of a channel or consumer the queue that it takes from, where it is one alone", nullable=True),
    ),
)

EPISODES = Table(
    name="episodes",
    grain="one finding from its beginning to its end",
    time="began",
    key=("began", "rule", "kind", "vhost", "name"),
    columns=(
        time("began", "when diagnosis first saw it, or first looked"),
        time("ended", "when it was gone; null while it lasts, or where its end was not seen", nullable=True),
        flag("lasts", "false: it is over; true: it was there when the exporter last looked"),
        time("last_told", "the latest event of it"),
        flag("found", "it was there at the exporter's first look: it began before"),
        text("rule", "stable name of the rule"),
        text("severity", "the worst that it had"),
        text("kind", "cluster, node, queue, connection, channel, consumer, exchange, vhost or probe"),
        text("vhost", 'virtual host; "" where the subject has none'),
        text("name", "name of the subject"),
        text("node", "its node", nullable=True),
        text("summary", "who suffers, and how, as last told", nullable=True),
    ),
)

ANALYSES = {table.name: table for table in (BASELINES, CHANGES, EPISODES)}
