"""The contract of collectors: declared metrics, and a pure function from snapshots to metric families.

A collector does not decide which objects get series of their own: it gets a `Selection`, made once for all collectors
by `TopK` in `exporter.exposition.cardinality`. Omitted objects are in the remainder, one series per metric whose object
name is `OTHER`, so that the sum over all series of a metric is the sum over all objects.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from prometheus_client.core import Metric

from ackscope.snapshot import Snapshot
from exporter.exposition.cardinality.selection import Selection
from exporter.exposition.specs import Spec


class Collector(NamedTuple):
    """One collector.

    Attributes:
        specs: every metric that the collector may emit.
        collect: (snapshots of all clusters, selection) -> families; no I/O, no clock, no state.
    """

    specs: tuple[Spec, ...]
    collect: Callable[[Sequence[Snapshot], Selection], Iterable[Metric]]
