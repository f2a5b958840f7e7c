"""What a collector is: its metrics as data, and one pure function from snapshots to families.

Which objects get series of their own is not the collector's decision: a `Selection` tells it, made once for all
collectors by `Chooser` in `exporter.exposition.cardinality`. What is not shown is in the remainder, one series a metric
with the object's name `OTHER`, so that a sum over all series of a metric is the sum over all objects.
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
        specs: every metric that it may make.
        collect: all clusters' snapshots, and what to show of them, to families; no I/O, no clock, no memory.
    """

    specs: tuple[Spec, ...]
    collect: Callable[[Sequence[Snapshot], Selection], Iterable[Metric]]
