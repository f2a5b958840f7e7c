"""How the polling of each cluster goes: success, age, duration, failures, answers that could not be used."""

from collections.abc import Mapping

from prometheus_client.core import Metric

from ackscope.clock import Instant
from ackscope.snapshot import Snapshot
from exporter.metrics import Families, counter, gauge
from exporter.polling.poller import PollStats
from exporter.state import ClusterState

_FAMILY = ("cluster", "family")

SUCCESS = gauge(
    "ackscope_poll_success",
    "Whether the latest reading of this family of objects succeeded; no sample before the first attempt.",
    "poller",
    *_FAMILY,
)
AGE = gauge(
    "ackscope_poll_age_seconds",
    "Time since the last good reading of this family; grows while the broker is away.",
    "poller",
    *_FAMILY,
)
DURATION = gauge(
    "ackscope_poll_duration_seconds", "How long the latest reading of this family took.", "poller", *_FAMILY
)
ATTEMPTS = counter("ackscope_poll_attempts_total", "Readings that ended, well or not.", "poller", *_FAMILY)
FAILURES = counter("ackscope_poll_failures_total", "Readings that failed.", "poller", *_FAMILY)
RECEIVED = counter("ackscope_poll_received_bytes_total", "Size of the broker's answers.", "poller", *_FAMILY)
GAPS = gauge(
    "ackscope_decode_gaps",
    "Objects of the latest reading that held something unusable in this field; it is left out, not guessed.",
    "poller",
    *_FAMILY,
    "field",
)

SPECS = (SUCCESS, AGE, DURATION, ATTEMPTS, FAILURES, RECEIVED, GAPS)


Stats = Mapping[str, PollStats]
"""What a poller counts: family name -> its counts."""


def collect(states: Mapping[str, ClusterState], stats: Mapping[str, Stats], now: Instant) -> list[Metric]:
    """Families of all clusters, at `now`; both mappings are by cluster name."""
    families = Families(SPECS)
    for cluster, counted in stats.items():
        for family, counts in counted.items():
            labels = {"cluster": cluster, "family": family}
            families.add(DURATION, labels, counts.last_seconds)
            families.add(ATTEMPTS, labels, counts.attempts)
            families.add(FAILURES, labels, counts.failures)
            families.add(RECEIVED, labels, counts.bytes_total)
    for state in states.values():
        if state.snapshot is not None:
            _parts(families, state.snapshot, now)
    return families.result()


def _parts(families: Families, snapshot: Snapshot, now: Instant) -> None:
    for family, part in snapshot.parts.items():
        labels = {"cluster": snapshot.cluster, "family": family}
        if part.at is not None or part.error is not None:
            families.add(SUCCESS, labels, int(part.error is None))
        families.add(AGE, labels, part.age(now))
        for field, objects in sorted(part.gaps.items()):
            families.add(GAPS, {**labels, "field": field}, objects)
