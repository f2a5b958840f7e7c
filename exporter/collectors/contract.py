"""What a collector is: its metrics as data, and one pure function from snapshots to families."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from prometheus_client.core import Metric

from ackscope.snapshot import Queue, Snapshot
from exporter.metrics import Spec


class Limits(NamedTuple):
    """How many objects of one cluster get series of their own."""

    queues: int = 5000
    findings: int = 500


class Collector(NamedTuple):
    """One collector.

    Attributes:
        specs: every metric that it may make.
        collect: all clusters' snapshots to families; no I/O, no clock, no memory of earlier calls.
    """

    specs: tuple[Spec, ...]
    collect: Callable[[Sequence[Snapshot], Limits], Iterable[Metric]]


def shown_queues(queues: Sequence[Queue], limit: int) -> list[Queue]:
    """The queues that get series of their own: those with most messages, then most consumers, then by name."""
    if len(queues) <= limit:
        return list(queues)
    ranked = sorted(queues, key=lambda queue: (-(queue.messages or 0), -(queue.consumers or 0), queue.key))
    return ranked[:limit]
