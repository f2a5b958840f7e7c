"""Fills the metrics of `exporter.probes_host.metric_specs` from probe records.

Records are events and are counted here. Counters that a probe keeps itself (redeliveries, blocked time) arrive as
totals since the start of the probe process, and are summed across restarts.
"""

from collections.abc import Sequence
from typing import NamedTuple

from prometheus_client import CollectorRegistry

from ackscope.records import AckBurst, MessageRecord, Outcome, ProbeOutcome, ProbeState, StepRecord
from exporter.exposition.specs import Spec
from exporter.probes_host.metric_specs import (
    BATCH_INTERVAL,
    BATCH_MESSAGES,
    BLOCKS,
    CONFIRMS,
    COUNTERS,
    DELIVERY,
    HISTOGRAMS,
    LATENCY,
    RESPONSE,
    SEND_DELAY,
    STEP,
    STEPS,
    TOTALS,
)
from probes.catalogue import PROBES

EMBED_BELOW = 4096
"""Limit in bytes. Classic queues store smaller messages in their index and larger ones in the shared message store.

Source: https://www.rabbitmq.com/docs/persistence-conf (`queue_index_embed_msgs_below`).
"""


class _Stream(NamedTuple):
    """One stream of a probe. `place` is its queue, because the node of a queue may change; without a queue its node."""

    cluster: str
    probe: str
    stream: str
    place: str


class ProbeMetrics:
    """Histograms and counters of all probes, in a registry of their own.

    Only one thread may write: the one that reads the probe process. Scrapes may read at any time.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._histograms = {spec.name: spec.histogram(self.registry) for spec in HISTOGRAMS}
        self._counters = {spec.name: spec.counter(self.registry) for spec in COUNTERS}
        self._before: dict[tuple[_Stream, str], float] = {}
        self._blocked: set[_Stream] = set()
        self._known: set[tuple[str, ...]] = set()

    def messages(self, cluster: str, records: Sequence[MessageRecord]) -> None:
        """Count settled messages."""
        for record in records:
            stream = (cluster, record.probe, record.stream, record.queue_type)
            self._begin(CONFIRMS, stream, Outcome)
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

    def steps(self, cluster: str, steps: Sequence[StepRecord]) -> None:
        """Count timed steps; only successful steps enter the durations."""
        for step in steps:
            labels = (cluster, step.probe, step.stream, step.step, step.node)
            self._begin(STEPS, labels, ("ok", "failed"))
            self._counters[STEPS.name].labels(*labels, "ok" if step.ok else "failed").inc()
            self._observe(STEP, labels, step.seconds if step.ok else None)

    def outcomes(self, cluster: str, outcomes: Sequence[ProbeOutcome]) -> None:
        """Add the increase of each total since the previous summary."""
        for outcome in outcomes:
            labels = (cluster, outcome.probe, outcome.stream, outcome.queue_type)
            stream = _Stream(cluster, outcome.probe, outcome.stream, outcome.queue or outcome.node)
            if PROBES[outcome.probe].sends:
                self._begin(CONFIRMS, labels, Outcome)
            for spec, field in TOTALS:
                total: float | None = getattr(outcome, field)
                if total is None:
                    continue
                before = self._before.get((stream, field), 0.0)
                self._before[stream, field] = total
                self._counters[spec.name].labels(*labels).inc(total - before if total >= before else total)
            self._count_block(stream, labels, blocked=outcome.state is ProbeState.BLOCKED)

    def restarted(self) -> None:
        """Reset the totals: the probe process was restarted and counts from zero."""
        self._before.clear()
        self._blocked.clear()

    def forget(self, cluster: str) -> None:
        """Drop all series of a removed cluster. None of its records may arrive meanwhile."""
        for family in (*self._histograms.values(), *self._counters.values()):
            family.remove_by_labels({"cluster": cluster})
        self._known = {labels for labels in self._known if labels[1] != cluster}
        self._blocked = {stream for stream in self._blocked if stream.cluster != cluster}
        self._before = {key: total for key, total in self._before.items() if key[0].cluster != cluster}

    def _count_block(self, stream: _Stream, labels: tuple[str, ...], *, blocked: bool) -> None:
        counted = self._counters[BLOCKS.name].labels(*labels)
        if blocked and stream not in self._blocked:
            counted.inc()
        (self._blocked.add if blocked else self._blocked.discard)(stream)

    def _begin(self, spec: Spec, labels: tuple[str, ...], last: Sequence[str] | type[Outcome]) -> None:
        # Create every outcome at 0, so that its first event is an increase and not a new series.
        if (spec.name, *labels) not in self._known:
            self._known.add((spec.name, *labels))
            for value in last:
                self._counters[spec.name].labels(*labels, str(value))

    def _observe(self, spec: Spec, labels: tuple[str, ...], value: float | None) -> None:
        if value is not None:
            self._histograms[spec.name].labels(*labels).observe(value)


def delivery_mode(mode: int) -> str:
    """Return the name of an AMQP delivery mode."""
    return "persistent" if mode == 2 else "transient"


def payload_class(size: int) -> str:
    """Return the size class of a body. Classic queues store the classes in different places."""
    return "<4KiB" if size < EMBED_BELOW else ">=4KiB"
