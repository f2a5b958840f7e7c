"""Metrics of the current state of each probe stream, from its latest summary.

If the summary is stale, only its age is exported.
"""

from collections.abc import Mapping

from prometheus_client.core import Metric

from ackscope.clock import Instant
from ackscope.records import ProbeOutcome, ProbeState
from exporter.exposition.specs import MetricFamilies, gauge
from exporter.runtime.state import ClusterState
from probes.catalogue import protocol_of

STALE_SECONDS = 30.0
"""Seconds after which a summary is stale. The probe process reports at least once a second."""

_LABELS = ("cluster", "probe", "stream", "node")

SUCCESS = gauge(
    "ackscope_probe_success",
    "1 if the last minute had at least one message or step and all of them succeeded: acked (and "
    "delivered), or nacked where the queue must nack. /api/v1/probes says what failed.",
    "probes",
    *_LABELS,
)
DOUBTFUL = gauge(
    "ackscope_probe_doubtful",
    "1 if the recent measurements are unreliable (the probe was late, or saw too few messages); "
    "/api/v1/probes says why.",
    "probes",
    *_LABELS,
)
RUNNING = gauge("ackscope_probe_running", "1 while the stream is measuring.", "probes", *_LABELS)
STATE = gauge(
    "ackscope_probe_state",
    "1 for the state of the stream: connecting, running, blocked (the broker blocks publishers: see its "
    "alarms), failed (it cannot measure; /api/v1/probes says why), unsupported (by this version of the broker, or "
    "without a plugin).",
    "probes",
    *_LABELS,
    "state",
)
OUTSTANDING = gauge(
    "ackscope_probe_outstanding_messages", "Messages published but not settled yet.", "probes", *_LABELS
)
PREFETCH = gauge("ackscope_prefetch_limit", "Prefetch limit of the probe's own consumer.", "probes, prefetch", *_LABELS)
UNACKED = gauge(
    "ackscope_prefetch_unacked_messages",
    "Unacknowledged deliveries of the probe's own consumer over the last minute (stat: p50, max); "
    "constantly at the limit means that prefetch limits delivery.",
    "probes, unacked",
    *_LABELS,
    "stat",
)
LOOP_LAG = gauge(
    "ackscope_probe_loop_lag_seconds",
    "Wake-up delay of the probe's event loop over the last minute (stat: p99, max): the probe's own error.",
    "probes",
    *_LABELS,
    "stat",
)
AGE = gauge(
    "ackscope_probe_outcome_age_seconds",
    f"Time since the last report of the stream; after {STALE_SECONDS:.0f} s its other gauges are not exported.",
    "probes",
    *_LABELS,
)
PROTOCOL = gauge(
    "ackscope_probe_protocol",
    "Always 1, for the protocol that the stream speaks (protocol: amqp091, amqp10, stream). Join it to the other "
    "metrics of a probe to compare protocols.",
    "probes",
    *_LABELS,
    "protocol",
)

SPECS = (SUCCESS, DOUBTFUL, RUNNING, STATE, PROTOCOL, OUTSTANDING, PREFETCH, UNACKED, LOOP_LAG, AGE)


def current_outcomes(state: ClusterState, now: Instant) -> list[ProbeOutcome]:
    """Return the summaries that are not stale, in a fixed order."""
    seen = (state.outcomes[key] for key in sorted(state.outcomes))
    return [it.outcome for it in seen if now.since(it.at) <= STALE_SECONDS]


def collect(states: Mapping[str, ClusterState], now: Instant) -> list[Metric]:
    """Metric families of all clusters at `now`."""
    families = MetricFamilies(SPECS)
    for cluster, state in states.items():
        for _, seen in sorted(state.outcomes.items()):
            families.add(AGE, stream_labels(cluster, seen.outcome), now.since(seen.at))
        for outcome in current_outcomes(state, now):
            _current(families, stream_labels(cluster, outcome), outcome)
    return families.result()


def stream_labels(cluster: str, outcome: ProbeOutcome) -> dict[str, str]:
    """Return the labels that identify a stream."""
    return {"cluster": cluster, "probe": outcome.probe, "stream": outcome.stream, "node": outcome.node}


def _current(families: MetricFamilies, labels: dict[str, str], outcome: ProbeOutcome) -> None:
    # What a broker does not support has neither succeeded nor failed.
    if outcome.state is not ProbeState.UNSUPPORTED:
        families.add(SUCCESS, labels, int(outcome.success))
        families.add(DOUBTFUL, labels, int(outcome.doubtful is not None))
    families.add(PROTOCOL, {**labels, "protocol": protocol_of(outcome.probe)}, 1)
    families.add(RUNNING, labels, int(outcome.state is ProbeState.RUNNING))
    for state in ProbeState:
        families.add(STATE, {**labels, "state": state.value}, int(outcome.state is state))
    families.add(OUTSTANDING, labels, outcome.outstanding)
    families.add(PREFETCH, labels, outcome.prefetch)
    families.add(UNACKED, {**labels, "stat": "p50"}, outcome.unacked.p50)
    families.add(UNACKED, {**labels, "stat": "max"}, outcome.unacked.max)
    families.add(LOOP_LAG, {**labels, "stat": "p99"}, outcome.loop_lag.p99)
    families.add(LOOP_LAG, {**labels, "stat": "max"}, outcome.loop_lag.max)
