"""Metrics of the age of queues: oldest message, sojourn time, time to empty. `diagnosis.queue_age` finds them."""

from collections.abc import Mapping

from prometheus_client.core import Metric

from diagnosis.queue_age import UNKNOWN, Bounds, read_at
from exporter.exposition.cardinality.selection import Selection
from exporter.exposition.specs import MetricFamilies, Spec, gauge, untested_because
from exporter.runtime.state import ClusterState

_LABELS = ("cluster", "vhost", "queue")
_SOURCE = "flow of /api/queues messages, message_stats.publish, ack, deliver_no_ack, get_no_ack, redeliver"
_ORDER = (
    "From the flow of messages, without timestamps, for a queue whose messages leave in order: bound lower always "
    "holds, upper is missing if unknown (/api/v1/columns has the reason)."
)

HEAD_AGE = gauge(
    "ackscope_queue_head_age_seconds",
    f"Age of the oldest message at the latest poll; missing if the queue is empty. {_ORDER}",
    _SOURCE,
    *_LABELS,
    "bound",
)
SOJOURN = gauge(
    "ackscope_queue_sojourn_seconds",
    "Time from arrival to departure of the messages that left in the last minute, as a percentile (50, 99) with its "
    "bounds (lower, upper; missing if unknown).",
    _SOURCE,
    *_LABELS,
    "percentile",
    "bound",
)
TIME_TO_EMPTY = untested_because(
    gauge(
        "ackscope_queue_time_to_empty_seconds",
        "Time until the queue is empty at the rate of the latest polls; missing if it does not drain.",
        _SOURCE,
        *_LABELS,
    ),
    "needs a backlog that drains over several polls",
)

SPECS = (HEAD_AGE, SOJOURN, TIME_TO_EMPTY)
_PERCENTILES = (50, 99)


def collect(states: Mapping[str, ClusterState], selection: Selection) -> list[Metric]:
    """Metric families of the selected queues of all clusters."""
    families = MetricFamilies(SPECS)
    for cluster, state in states.items():
        part = None if state.snapshot is None else state.snapshot.queues
        if part is None or part.at is None:
            continue
        for queue in selection.of(cluster).queues.shown:
            age = state.queue_ages.get(queue.key, UNKNOWN)
            labels, at = {"cluster": cluster, "vhost": queue.vhost, "queue": queue.name}, read_at(queue, part.at)
            _bounds(families, HEAD_AGE, labels, age.head_age(at))
            for percentile in _PERCENTILES if age.departed else ():
                named = {**labels, "percentile": str(percentile)}
                _bounds(families, SOJOURN, named, age.sojourn(percentile / 100, at))
            families.add(TIME_TO_EMPTY, labels, age.drain_seconds)
    return families.result()


def _bounds(families: MetricFamilies, spec: Spec, labels: dict[str, str], bounds: Bounds) -> None:
    for name, value in bounds._asdict().items():
        if value is not None:
            families.add(spec, {**labels, "bound": name}, value)
