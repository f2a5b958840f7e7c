"""How the polling of each cluster goes: success, age, cost, failures, coverage, answers that could not be used."""

from collections.abc import Mapping

from prometheus_client.core import Metric

from ackscope.clock import Instant
from ackscope.snapshot import Part, Queue, Snapshot
from exporter.broker.queue_reader import QueueMode
from exporter.metrics import Families, counter, gauge, still
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
    "The broker's time that this family took: from each request to the end of its answer, failures too, less what the "
    "quickest answer of the last minute took above a millisecond: the way there and back.",
    "poller",
    *_FAMILY,
)
BUDGET = gauge(
    "ackscope_poll_budget_ratio",
    "Share of one core of the broker that polling may take now: poll.budget, or, where that is not set, 0.01 while "
    "something moves on the broker and less while it is calm.",
    "poll.budget",
    "cluster",
)
SPENT = gauge(
    "ackscope_poll_spent_ratio",
    "Share that it took in the last minute by our own clock, overview, nodes and health checks not counted; above the "
    "budget where the machines are busy with other work, for readings are planned by the least that they took.",
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
DROPPED = still(
    counter(
        "ackscope_queue_readings_dropped_total",
        "Older readings of single queues that were let go, for 50000 are held at most beyond the latest two of each; "
        "diagnosis sees less of their past.",
        "poller",
        "cluster",
    ),
    "it takes tens of thousands of queues that change all the time",
)
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
    DROPPED,
    GAPS,
)

AGES = (AGE, OLDEST, MEDIAN)


def collect(states: Mapping[str, ClusterState], stats: Mapping[str, PollerStats], now: Instant) -> list[Metric]:
    """Families of all clusters, at `now`; both mappings are by cluster name."""
    return [*counts(states, stats), *ages(states, stats, now)]


def counts(states: Mapping[str, ClusterState], stats: Mapping[str, PollerStats]) -> list[Metric]:
    """Those that are as they are until the next snapshot."""
    families = Families(spec for spec in SPECS if spec not in AGES)
    for cluster, counted in stats.items():
        _costs(families, cluster, counted)
        queues = _queues(states, cluster)
        if counted.mode is not None and queues is not None:
            full = counted.mode is QueueMode.FULL
            families.add(FULL, {"cluster": cluster}, int(full))
            # In full, the statistics of all come with the list itself.
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
    """Those that grow with every moment."""
    families = Families(AGES)
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
            for family, part in snapshot.parts.items():
                families.add(AGE, {"cluster": snapshot.cluster, "family": family}, part.age(now))
    return families.result()


def _queues(states: Mapping[str, ClusterState], cluster: str) -> Part[tuple[Queue, ...]] | None:
    """The queues as they were read last; None where they never were."""
    snapshot = states[cluster].snapshot if cluster in states else None
    return snapshot.queues if snapshot is not None and snapshot.queues.value is not None else None


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


def _parts(families: Families, snapshot: Snapshot) -> None:
    for family, part in snapshot.parts.items():
        labels = {"cluster": snapshot.cluster, "family": family}
        if part.at is not None or part.error is not None:
            families.add(SUCCESS, labels, int(part.error is None))
        for field, objects in sorted(part.gaps.items()):
            families.add(GAPS, {**labels, "field": field}, objects)
