"""How the polling of each cluster goes: success, age, cost, failures, coverage, answers that could not be used."""

from collections.abc import Mapping

from prometheus_client.core import Metric

from ackscope.clock import Instant
from ackscope.snapshot import Snapshot
from exporter.broker.queue_reading import Mode
from exporter.metrics import Families, counter, gauge
from exporter.polling.poller import PollerStats
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
    "Time since the last good reading of this family (of queues: of their totals); grows while the broker is away.",
    "poller",
    *_FAMILY,
)
DURATION = gauge(
    "ackscope_poll_duration_seconds", "How long the latest reading of this family took.", "poller", *_FAMILY
)
INTERVAL = gauge(
    "ackscope_poll_interval_seconds",
    "Time from one reading of this family to the next, as its cost and the budget have it now.",
    "poller",
    *_FAMILY,
)
ATTEMPTS = counter("ackscope_poll_attempts_total", "Readings that ended, well or not.", "poller", *_FAMILY)
FAILURES = counter("ackscope_poll_failures_total", "Readings that failed.", "poller", *_FAMILY)
REQUESTS = counter("ackscope_poll_requests_total", "Requests to the management API.", "poller", *_FAMILY)
RECEIVED = counter("ackscope_poll_received_bytes_total", "Size of the broker's answers.", "poller", *_FAMILY)
COST = counter(
    "ackscope_poll_cost_seconds_total",
    "The broker's time that this family took: from each request to the end of its answer, failures too.",
    "poller",
    *_FAMILY,
)
BUDGET = gauge(
    "ackscope_poll_budget_ratio", "Share of one core of the broker that polling may take.", "poll.budget", "cluster"
)
SPENT = gauge(
    "ackscope_poll_spent_ratio",
    "Share that it took in the last minute, overview, nodes and health checks not counted.",
    "poller",
    "cluster",
)
FULL = gauge(
    "ackscope_poll_full_reading",
    "1 where all queues are read in full every time, 0 where totals of all and statistics by turns.",
    "poller",
    "cluster",
)
DETAILED = gauge(
    "ackscope_poll_detailed_queues",
    "Queues whose full statistics were ever read; the others have totals only.",
    "poller",
    "cluster",
)
OLDEST = gauge("ackscope_poll_details_oldest_seconds", "Age of the oldest statistics of a queue.", "poller", "cluster")
MEDIAN = gauge("ackscope_poll_details_median_seconds", "Median age of the statistics of queues.", "poller", "cluster")
GAPS = gauge(
    "ackscope_decode_gaps",
    "Objects of the latest reading that held something unusable in this field; it is left out, not guessed.",
    "poller",
    *_FAMILY,
    "field",
)

SPECS = (
    SUCCESS,
    AGE,
    DURATION,
    INTERVAL,
    ATTEMPTS,
    FAILURES,
    REQUESTS,
    RECEIVED,
    COST,
    BUDGET,
    SPENT,
    FULL,
    DETAILED,
    OLDEST,
    MEDIAN,
    GAPS,
)


def collect(states: Mapping[str, ClusterState], stats: Mapping[str, PollerStats], now: Instant) -> list[Metric]:
    """Families of all clusters, at `now`; both mappings are by cluster name."""
    families = Families(SPECS)
    for cluster, counted in stats.items():
        _costs(families, cluster, counted)
        snapshot = states[cluster].snapshot if cluster in states else None
        _coverage(families, cluster, counted, snapshot, now)
    for state in states.values():
        if state.snapshot is not None:
            _parts(families, state.snapshot, now)
    return families.result()


def _costs(families: Families, cluster: str, counted: PollerStats) -> None:
    families.add(BUDGET, {"cluster": cluster}, counted.budget)
    families.add(SPENT, {"cluster": cluster}, counted.spent)
    for family, counts in counted.families.items():
        labels = {"cluster": cluster, "family": family}
        families.add(DURATION, labels, counts.last_seconds)
        families.add(INTERVAL, labels, counts.interval)
        families.add(ATTEMPTS, labels, counts.attempts)
        families.add(FAILURES, labels, counts.failures)
        families.add(REQUESTS, labels, counts.requests)
        families.add(RECEIVED, labels, counts.bytes_total)
        families.add(COST, labels, counts.cost_seconds)


def _coverage(families: Families, cluster: str, counted: PollerStats, snapshot: Snapshot | None, now: Instant) -> None:
    labels = {"cluster": cluster}
    queues = snapshot.queues if snapshot else None
    if counted.mode is None or queues is None or queues.value is None:
        return
    families.add(FULL, labels, int(counted.mode is Mode.FULL))
    if counted.mode is Mode.FULL:
        # Then the statistics of all are as old as the list itself.
        families.add(DETAILED, labels, len(queues.value))
        families.add(OLDEST, labels, queues.age(now))
        families.add(MEDIAN, labels, queues.age(now))
    elif (coverage := counted.coverage) is not None:
        families.add(DETAILED, labels, coverage.detailed)
        families.add(OLDEST, labels, None if coverage.oldest is None else now.mono - coverage.oldest)
        families.add(MEDIAN, labels, None if coverage.median is None else now.mono - coverage.median)


def _parts(families: Families, snapshot: Snapshot, now: Instant) -> None:
    for family, part in snapshot.parts.items():
        labels = {"cluster": snapshot.cluster, "family": family}
        if part.at is not None or part.error is not None:
            families.add(SUCCESS, labels, int(part.error is None))
        families.add(AGE, labels, part.age(now))
        for field, objects in sorted(part.gaps.items()):
            families.add(GAPS, {**labels, "field": field}, objects)
