"""Columns of the queue list with the age of each queue. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ackscope.clock import Instant
from ackscope.snapshot import Queue
from diagnosis.queue_age import UNKNOWN, QueueAge, QueueKey, read_at

QueueAges = Mapping[QueueKey, QueueAge]

_READERS: Mapping[str, Callable[[QueueAge, Instant], Any]] = {
    "head_age_lower": lambda age, at: age.head_age(at).lower,
    "head_age_upper": lambda age, at: age.head_age(at).upper,
    "sojourn_p50_lower": lambda age, at: age.sojourn(0.5, at).lower,
    "sojourn_p50_upper": lambda age, at: age.sojourn(0.5, at).upper,
    "sojourn_p99_lower": lambda age, at: age.sojourn(0.99, at).lower,
    "sojourn_p99_upper": lambda age, at: age.sojourn(0.99, at).upper,
    "time_to_empty": lambda age, _: age.drain_seconds,
    "age_reasons": lambda age, _: age.reasons,
}

AGE_COLUMNS = tuple(_READERS)
"""Seconds, null if unknown; `age_reasons` is the list of reason codes of `diagnosis.queue_age`."""


def age_column(queues: Sequence[Queue], name: str, ages: QueueAges, at: Instant | None) -> list[Any]:
    """Return one of `AGE_COLUMNS`; `at` is the time of the list."""
    read = _READERS[name]
    if at is None:
        return [None] * len(queues)
    return [read(ages.get(queue.key, UNKNOWN), read_at(queue, at)) for queue in queues]
