"""How each probe stream does now, from its latest summary.

A summary that has grown old says nothing of now: only its age is shown then.
"""

from collections.abc import Mapping

from prometheus_client.core import Metric

from ackscope.clock import Instant
from ackscope.records import ProbeOutcome
from exporter.metrics import Families, gauge
from exporter.state import ClusterState

STALE_SECONDS = 30.0
"""A probe process says something at least once a second; thirty times that is silence."""

_LABELS = ("cluster", "probe", "stream", "node")

SUCCESS = gauge(
    "ackscope_probe_success",
    "1 when the last minute held a message and every one was acked (and delivered).",
    "probes",
    *_LABELS,
)
DOUBTFUL = gauge(
    "ackscope_probe_doubtful",
    "1 when the probe itself was too late to measure well; /api/v1/probes says why.",
    "probes",
    *_LABELS,
)
RUNNING = gauge("ackscope_probe_running", "1 while the stream publishes.", "probes", *_LABELS)
OUTSTANDING = gauge(
    "ackscope_probe_outstanding_messages", "Messages published and not settled yet.", "probes", *_LABELS
)
LOOP_LAG = gauge(
    "ackscope_probe_loop_lag_seconds",
    "How late the probe's own loop woke over the last minute (stat: p99, max): its own error.",
    "probes",
    *_LABELS,
    "stat",
)
AGE = gauge(
    "ackscope_probe_outcome_age_seconds",
    f"Time since the stream last reported; beyond {STALE_SECONDS:.0f} s its other gauges are withheld.",
    "probes",
    *_LABELS,
)

SPECS = (SUCCESS, DOUBTFUL, RUNNING, OUTSTANDING, LOOP_LAG, AGE)


def collect(states: Mapping[str, ClusterState], now: Instant) -> list[Metric]:
    """Families of all clusters, at `now`."""
    families = Families(SPECS)
    for cluster, state in states.items():
        for (probe, stream, _), seen in sorted(state.outcomes.items()):
            labels = {"cluster": cluster, "probe": probe, "stream": stream, "node": seen.outcome.node}
            age = now.since(seen.at)
            families.add(AGE, labels, age)
            if age <= STALE_SECONDS:
                _current(families, labels, seen.outcome)
    return families.result()


def _current(families: Families, labels: dict[str, str], outcome: ProbeOutcome) -> None:
    families.add(SUCCESS, labels, int(outcome.success))
    families.add(DOUBTFUL, labels, int(outcome.doubtful is not None))
    families.add(RUNNING, labels, int(outcome.state == "running"))
    families.add(OUTSTANDING, labels, outcome.outstanding)
    families.add(LOOP_LAG, {**labels, "stat": "p99"}, outcome.loop_lag.p99)
    families.add(LOOP_LAG, {**labels, "stat": "max"}, outcome.loop_lag.max)
