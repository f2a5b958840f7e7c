"""Metrics of probe records: latency histograms, counters of message outcomes and steps.

Declarations only; `exporter.probes_host.metrics` fills them.
"""

from exporter.exposition.specs import Spec, counter, histogram

_TIMES = (
    *(0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05),
    *(0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0),
)
_SIZES = tuple(float(2**power) for power in range(13))

_STREAM = ("cluster", "probe", "stream", "queue_type")
_MESSAGE = (*_STREAM, "delivery_mode", "payload", "node")
_STEP = ("cluster", "probe", "stream", "step", "node")

LATENCY = histogram(
    "ackscope_confirm_latency_seconds",
    "Confirm latency: from sent to settled (acked, nacked or returned), as the publisher sees it.",
    "probes, confirm",
    _TIMES,
    *_MESSAGE,
)
RESPONSE = histogram(
    "ackscope_confirm_response_seconds",
    "From the scheduled send time to settled: what a caller waits, client stalls included.",
    "probes, response",
    _TIMES,
    *_MESSAGE,
)
CONFIRMS = counter(
    "ackscope_confirms_total",
    "Messages by outcome: acked, nacked (expected for the probes nack and reject), returned, undecided (no confirm "
    "before the timeout), lost (channel died). AMQP 1.0: accepted is acked, rejected nacked, released returned.",
    "probes, outcome",
    *_STREAM,
    "outcome",
)
BATCH_MESSAGES = histogram(
    "ackscope_confirm_batch_messages",
    "Messages settled by ack frames that arrived together.",
    "probes, ack bursts",
    _SIZES,
    *_STREAM,
    "node",
)
BATCH_INTERVAL = histogram(
    "ackscope_confirm_batch_interval_seconds",
    "Time between bursts of ack frames.",
    "probes, ack bursts",
    _TIMES,
    *_STREAM,
    "node",
)
DELIVERY = histogram(
    "ackscope_delivery_latency_seconds",
    "Delivery latency: from sent to first delivery.",
    "probes, delivery",
    _TIMES,
    *_STREAM,
    "node",
)
SEND_DELAY = histogram(
    "ackscope_probe_send_delay_seconds",
    "From the scheduled send time to sent: the probe's own error.",
    "probes, send_delay",
    _TIMES,
    *_STREAM,
)
REDELIVERIES = counter(
    "ackscope_redeliveries_total", "Deliveries marked as redelivered.", "probes, redeliveries", *_STREAM
)
DUPLICATES = counter(
    "ackscope_delivery_duplicates_total",
    "Deliveries of a message after its first.",
    "probes, duplicates",
    *_STREAM,
)
OUT_OF_ORDER = counter(
    "ackscope_delivery_out_of_order_total",
    "Messages delivered after a later one.",
    "probes, out_of_order",
    *_STREAM,
)
MISSING = counter(
    "ackscope_delivery_missing_total",
    "Confirmed messages that were not delivered in time: lost by the broker, or later than the limit.",
    "probes, missing",
    *_STREAM,
)
BLOCKED = counter(
    "ackscope_connection_blocked_seconds_total",
    "Time that the broker blocked the probe's connection, as it does with all publishers. See "
    "rabbitmqctl list_connections state, and the alarm that causes it.",
    "probes, blocked_seconds",
    *_STREAM,
)
BLOCKS = counter(
    "ackscope_connection_blocks_total",
    "Times that a stream became blocked (connection.blocked); /api/v1/probes has the broker's reason.",
    "probes, state",
    *_STREAM,
)
STEP = histogram(
    "ackscope_probe_step_seconds",
    "Duration of a timed step of a probe, such as tcp, open, declare or requeue; failed steps are not included.",
    "probes, steps",
    _TIMES,
    *_STEP,
)
STEPS = counter(
    "ackscope_probe_steps_total",
    "Timed steps by outcome (ok, failed); /api/v1/probes says why the latest failed.",
    "probes, steps",
    *_STEP,
    "outcome",
)

TOTALS: tuple[tuple[Spec, str], ...] = (
    (REDELIVERIES, "redeliveries"),
    (DUPLICATES, "duplicates"),
    (OUT_OF_ORDER, "out_of_order"),
    (MISSING, "missing"),
    (BLOCKED, "blocked_seconds"),
)
"""Counters that the probe itself keeps, and the field of its summary with the total."""

HISTOGRAMS = (LATENCY, RESPONSE, BATCH_MESSAGES, BATCH_INTERVAL, DELIVERY, SEND_DELAY, STEP)
COUNTERS = (CONFIRMS, *(spec for spec, _ in TOTALS), BLOCKS, STEPS)
SPECS = (*HISTOGRAMS, *COUNTERS)
