"""Probe records as metrics: histograms of what clients live through, counters of what became of messages.

Records are events and are counted here. Counters that a probe keeps itself (redeliveries, blocked time) arrive
as totals since its start, and are added up over restarts of the probe process.
"""

from collections.abc import Sequence
from typing import NamedTuple

from prometheus_client import CollectorRegistry

from ackscope.records import AckBurst, MessageRecord, Outcome, ProbeOutcome
from exporter.metrics import Spec, counter, histogram

_TIMES = (
    *(0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05),
    *(0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0),
)
_SIZES = tuple(float(2**power) for power in range(13))

_STREAM = ("cluster", "probe", "stream", "queue_type")
_MESSAGE = (*_STREAM, "delivery_mode", "payload", "node")

LATENCY = histogram(
    "ackscope_confirm_latency_seconds",
    "From sent to settled (acked, nacked or returned), as the publisher sees it.",
    "probes, confirm",
    _TIMES,
    *_MESSAGE,
)
RESPONSE = histogram(
    "ackscope_confirm_response_seconds",
    "From when a message was meant to be sent to settled: what a caller waits, stalls of the client included.",
    "probes, response",
    _TIMES,
    *_MESSAGE,
)
CONFIRMS = counter(
    "ackscope_confirms_total",
    "Messages by what became of them: acked, nacked, returned, undecided (no answer in time), lost (channel died).",
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
    "From one burst of ack frames to the next.",
    "probes, ack bursts",
    _TIMES,
    *_STREAM,
    "node",
)
DELIVERY = histogram(
    "ackscope_delivery_latency_seconds",
    "From sent to first delivered.",
    "probes, delivery",
    _TIMES,
    *_STREAM,
    "node",
)
SEND_DELAY = histogram(
    "ackscope_probe_send_delay_seconds",
    "From when a message was meant to be sent to sent: the probe's own error.",
    "probes, send_delay",
    _TIMES,
    *_STREAM,
)
REDELIVERIES = counter(
    "ackscope_redeliveries_total", "Deliveries marked as redelivered.", "probes, redeliveries", *_STREAM
)
DUPLICATES = counter(
    "ackscope_delivery_duplicates_total",
    "Deliveries of a message beyond its first.",
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
    "Messages confirmed and not delivered in time: lost by the broker, or late beyond the limit.",
    "probes, missing",
    *_STREAM,
)
BLOCKED = counter(
    "ackscope_connection_blocked_seconds_total",
    "Time that the broker kept the probe's connection blocked.",
    "probes, blocked_seconds",
    *_STREAM,
)

_TOTALS: tuple[tuple[Spec, str], ...] = (
    (REDELIVERIES, "redeliveries"),
    (DUPLICATES, "duplicates"),
    (OUT_OF_ORDER, "out_of_order"),
    (MISSING, "missing"),
    (BLOCKED, "blocked_seconds"),
)
_HISTOGRAMS = (LATENCY, RESPONSE, BATCH_MESSAGES, BATCH_INTERVAL, DELIVERY, SEND_DELAY)

SPECS = (*_HISTOGRAMS, CONFIRMS, *(spec for spec, _ in _TOTALS))

EMBED_BELOW = 4096
"""Classic queues keep smaller messages in their index and larger ones in the shared message store.

Source: https://www.rabbitmq.com/docs/persistence-conf (`queue_index_embed_msgs_below`).
"""


class _Stream(NamedTuple):
    cluster: str
    probe: str
    stream: str
    node: str


class ProbeMetrics:
    """Holds the histograms and counters of all probes, in its own registry.

    Not for several writers at once: one thread reads the probe process. Scrapes may read at any time.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._histograms = {spec.name: spec.histogram(self.registry) for spec in _HISTOGRAMS}
        self._counters = {spec.name: spec.counter(self.registry) for spec in (CONFIRMS, *(spec for spec, _ in _TOTALS))}
        self._before: dict[tuple[_Stream, str], float] = {}
        self._known: set[tuple[str, ...]] = set()

    def messages(self, cluster: str, records: Sequence[MessageRecord]) -> None:
        """Count messages whose outcome is known."""
        for record in records:
            stream = (cluster, record.probe, record.stream, record.queue_type)
            self._begin(stream)
            self._counters[CONFIRMS.name].labels(*stream, record.outcome.value).inc()
            self._observe(SEND_DELAY, stream, record.send_delay)
            message = (*stream, delivery_mode(record.delivery_mode), payload_class(record.payload_bytes))
            self._observe(LATENCY, (*message, record.node), record.confirm)
            self._observe(RESPONSE, (*message, record.node), record.response)
            self._observe(DELIVERY, (*stream, record.node), record.delivery)

    def bursts(self, cluster: str, bursts: Sequence[AckBurst]) -> None:
        """Count bursts of ack frames."""
        for burst in bursts:
            labels = (cluster, burst.probe, burst.stream, burst.queue_type, burst.node)
            self._observe(BATCH_MESSAGES, labels, burst.messages)
            self._observe(BATCH_INTERVAL, labels, burst.interval)

    def outcomes(self, cluster: str, outcomes: Sequence[ProbeOutcome]) -> None:
        """Add what each total grew by since the summary before."""
        for outcome in outcomes:
            labels = (cluster, outcome.probe, outcome.stream, outcome.queue_type)
            self._begin(labels)
            stream = _Stream(cluster, outcome.probe, outcome.stream, outcome.node)
            for spec, field in _TOTALS:
                total: float | None = getattr(outcome, field)
                if total is None:
                    continue
                before = self._before.get((stream, field), 0.0)
                self._before[stream, field] = total
                self._counters[spec.name].labels(*labels).inc(total - before if total >= before else total)

    def restarted(self) -> None:
        """The probe process begins anew: its totals start again from zero."""
        self._before.clear()

    def _begin(self, stream: tuple[str, ...]) -> None:
        # Every outcome exists from the start, so that its first event is an increase and not a new series.
        if stream not in self._known:
            self._known.add(stream)
            for outcome in Outcome:
                self._counters[CONFIRMS.name].labels(*stream, outcome.value)

    def _observe(self, spec: Spec, labels: tuple[str, ...], value: float | None) -> None:
        if value is not None:
            self._histograms[spec.name].labels(*labels).observe(value)


def delivery_mode(mode: int) -> str:
    """The AMQP delivery mode in words."""
    return "persistent" if mode == 2 else "transient"


def payload_class(size: int) -> str:
    """The size class of a body: the classes are stored on different paths."""
    return "<4KiB" if size < EMBED_BELOW else ">=4KiB"
