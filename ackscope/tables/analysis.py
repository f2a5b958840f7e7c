"""Tables of analyses over the rollups: baselines, change points and finding episodes."""

from ackscope.tables.contract import Table, count, flag, number, text, time

_KIND = text("kind", "queue, channel, consumer, node or probe; in `baselines` also cluster: all queues together")
_VHOST = text("vhost", 'virtual host; "" if it has none')
_NAME = text("name", "name of the queue or node; of a probe `probe/stream/node`; of a channel as in the broker")
_MEASURE = text(
    "measure",
    "queue: ready, unacked (messages), published, delivered, acked, redelivered (per second); probe: "
    "confirm_p50, confirm_p99, delivery_p99 (seconds), failed (share of messages); node: mem_used (bytes), ...",
)

BASELINES = Table(
    name="baselines",
    grain="the usual range of one measure of one object in one hour of the week; one file per hour of the week",
    time="made_at",
    key=("hour_of_week", "kind", "vhost", "name", "measure"),
    columns=(
        time("made_at", "end of the data that it was computed from"),
        count("hour_of_week", "0 is Monday 00:00 to 01:00 UTC, 167 the last hour of Sunday"),
        _KIND,
        _VHOST,
        _NAME,
        _MEASURE,
        text("scope", "hour-of-week, hour-of-day if there are too few weeks, or not-yet"),
        count("values", "number of hours that it was computed from"),
        number("low", "below this is unusual", nullable=True),
        number("middle", "the median", nullable=True),
        number("high", "above this is unusual", nullable=True),
        text("reason", "why there is no band yet, such as: 3 of 7 days", nullable=True),
    ),
)

CHANGES = Table(
    name="changes",
    grain="one lasting level shift of one measure of one object",
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
        number("score", "size of the shift in robust spreads of the minutes before; larger is more certain"),
        count("minutes", "duration of the new level so far, minutes"),
        text("queue", "for a channel or consumer, the queue that it consumes from, if it is only one", nullable=True),
    ),
)

EPISODES = Table(
    name="episodes",
    grain="one finding from its beginning to its end",
    time="began",
    key=("began", "rule", "kind", "vhost", "name"),
    columns=(
        time("began", "when diagnosis first saw it, or when the exporter started"),
        time("ended", "when it ended; null while it lasts, or if its end was not seen", nullable=True),
        flag("lasts", "false: it is over; true: it was active when it was last reported"),
        time("last_told", "time of its latest event"),
        flag("found", "it was already active when the exporter started"),
        text("rule", "stable name of the rule"),
        text("severity", "its highest severity"),
        text("kind", "cluster, node, queue, connection, channel, consumer, exchange, vhost or probe"),
        text("vhost", 'virtual host; "" if the subject has none'),
        text("name", "name of the subject"),
        text("node", "its node", nullable=True),
        text("summary", "who is affected, and how, as last reported", nullable=True),
    ),
)

ANALYSES = {table.name: table for table in (BASELINES, CHANGES, EPISODES)}
