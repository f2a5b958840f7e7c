"""Metrics of polling each cluster: success, age, cost, failures, coverage, unusable fields."""

from collections.abc import Mapping
from typing import Any

from prometheus_client.core import Metric

from ackscope.clock import Instant
from ackscope.snapshot import Part, Queue, Snapshot
from exporter.broker.families import METRICS
from exporter.broker.queue_reader import QueueMode
from exporter.exposition.specs import MetricFamilies, counter, gauge, untested_because
from exporter.polling.poller import PollerStats
from exporter.runtime.state import ClusterState

_FAMILY = ("cluster", "family")

SUCCESS = gauge(
    "ackscope_poll_success",
    "Whether the latest poll of this endpoint family succeeded; no sample before the first attempt.",
    "poller",
    *_FAMILY,
)
AGE = gauge(
    "ackscope_poll_age_seconds",
    "Time since the last successful poll of this endpoint family (for queues: of their totals); it grows "
    "while the broker is unreachable.",
    "poller",
    *_FAMILY,
)
DURATION = gauge(
    "ackscope_poll_duration_seconds", "Duration of the latest poll of this endpoint family.", "poller", *_FAMILY
)
INTERVAL = gauge(
    "ackscope_poll_interval_seconds",
    "Current interval between polls of this endpoint family, given its cost and the budget.",
    "poller",
    *_FAMILY,
)
ATTEMPTS = counter("ackscope_poll_attempts_total", "Polls that finished, successful or not.", "poller", *_FAMILY)
FAILURES = counter("ackscope_poll_failures_total", "Polls that failed.", "poller", *_FAMILY)
REQUESTS = counter("ackscope_poll_requests_total", "Requests to the management API.", "poller", *_FAMILY)
RECEIVED = counter("ackscope_poll_received_bytes_total", "Size of the broker's responses.", "poller", *_FAMILY)
COST = counter(
    "ackscope_poll_cost_seconds_total",
    "Broker time spent on this endpoint family: from each request to the end of its response, failures "
    "included, minus the round trip (fastest response of the last minute, beyond 1 ms).",
    "poller",
    *_FAMILY,
)
BUDGET = gauge(
    "ackscope_poll_budget_ratio",
    "Share of one broker core that polling may use now: poll.budget, or if unset 0.01 while the broker "
    "is active and less while it is idle.",
    "poll.budget",
    "cluster",
)
SPENT = gauge(
    "ackscope_poll_spent_ratio",
    "Share used in the last minute by our own clock, without overview, nodes and health checks. It "
    "exceeds the budget if the machines are busy with other work, because polls are planned by their "
    "minimum cost.",
    "poller",
    "cluster",
)
FULL = gauge(
    "ackscope_poll_full_reading",
    "1 if all queues are read in full at every poll, 0 if totals are read for all and details for a rotating subset.",
    "poller",
    "cluster",
)
DETAILED = gauge(
    "ackscope_poll_detailed_queues",
    "Queues whose full statistics have been read at least once; the others have totals only.",
    "poller",
    "cluster",
)
OLDEST = gauge("ackscope_poll_details_oldest_seconds", "Age of the oldest queue statistics.", "poller", "cluster")
MEDIAN = gauge("ackscope_poll_details_median_seconds", "Median age of the queue statistics.", "poller", "cluster")
DROPPED = untested_because(
    counter(
        "ackscope_queue_readings_dropped_total",
        "Older readings of single queues dropped, because at most 50000 are kept beyond the latest two of "
        "each; diagnosis sees a shorter history of them.",
        "poller",
        "cluster",
    ),
    "needs tens of thousands of queues that change all the time",
)
GAPS = gauge(
    "ackscope_decode_gaps",
    "Objects of the latest poll with an unusable value in this field; the value is left out.",
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
    DROPPED,
    GAPS,
)

AGES = (AGE, OLDEST, MEDIAN)


def collect(states: Mapping[str, ClusterState], stats: Mapping[str, PollerStats], now: Instant) -> list[Metric]:
    """Metric families of all clusters at `now`. Both mappings are by cluster name."""
    return [*counts(states, stats), *ages(states, stats, now)]


def counts(states: Mapping[str, ClusterState], stats: Mapping[str, PollerStats]) -> list[Metric]:
    """Metric families that change only with a new snapshot."""
    families = MetricFamilies(spec for spec in SPECS if spec not in AGES)
    for cluster, counted in stats.items():
        _costs(families, cluster, counted)
        queues = _queues(states, cluster)
        if counted.mode is not None and queues is not None:
            full = counted.mode is QueueMode.FULL
            families.add(FULL, {"cluster": cluster}, int(full))
            # In full mode the statistics of all queues come with the list.
            if full:
                families.add(DETAILED, {"cluster": cluster}, len(queues.value or ()))
            elif counted.coverage is not None:
                families.add(DETAILED, {"cluster": cluster}, counted.coverage.detailed)
    for state in states.values():
        if state.snapshot is not None:
            _parts(families, state.snapshot)
            if state.snapshot.queues.value is not None:
                families.add(DROPPED, {"cluster": state.snapshot.cluster}, state.readings_dropped)
    return families.result()


def ages(states: Mapping[str, ClusterState], stats: Mapping[str, PollerStats], now: Instant) -> list[Metric]:
    """Metric families that change continuously."""
    families = MetricFamilies(AGES)
    for cluster, counted in stats.items():
        labels, queues, coverage = {"cluster": cluster}, _queues(states, cluster), counted.coverage
        if counted.mode is QueueMode.FULL and queues is not None:
            families.add(OLDEST, labels, queues.age(now))
            families.add(MEDIAN, labels, queues.age(now))
        elif counted.mode is QueueMode.TOTALS and queues is not None and coverage is not None:
            families.add(OLDEST, labels, None if coverage.oldest is None else now.mono - coverage.oldest)
            families.add(MEDIAN, labels, None if coverage.median is None else now.mono - coverage.median)
    for state in states.values():
        snapshot = state.snapshot
        if snapshot is not None:
            for family, part in _polled(snapshot).items():
                families.add(AGE, {"cluster": snapshot.cluster, "family": family}, part.age(now))
    return families.result()


def _queues(states: Mapping[str, ClusterState], cluster: str) -> Part[tuple[Queue, ...]] | None:
    """Return the queues part of a cluster; None if queues were never read."""
    snapshot = states[cluster].snapshot if cluster in states else None
    return snapshot.queues if snapshot is not None and snapshot.queues.value is not None else None


def _costs(families: MetricFamilies, cluster: str, counted: PollerStats) -> None:
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


def _polled(snapshot: Snapshot) -> dict[str, Part[Any]]:
    """Return the parts, with the second source where it is read."""
    metrics = snapshot.prometheus
    in_use = metrics.value is not None or metrics.error is not None
    return {**snapshot.parts, METRICS: metrics} if in_use else snapshot.parts


def _parts(families: MetricFamilies, snapshot: Snapshot) -> None:
    for family, part in _polled(snapshot).items():
        labels = {"cluster": snapshot.cluster, "family": family}
        if part.at is not None or part.error is not None:
            families.add(SUCCESS, labels, int(part.error is None))
        for field, objects in sorted(part.gaps.items()):
            families.add(GAPS, {**labels, "field": field}, objects)
