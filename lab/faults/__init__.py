"""Faults that can be injected into a broker, one per file and grouped by subject; `FAULTS` is the table.

`python -m lab.faults NAME --amqp URL --management URL [--lab FOLDER]` injects one, prints a JSON line once it is in
effect, and keeps it in effect until SIGTERM or the end of its input; then it undoes the fault.
"""

from collections.abc import Mapping

from lab.faults import clients, cluster, consumers, nodes, probing, publishers, queues, topology
from lab.faults.fault import FaultSpec

FAULT_GROUPS: Mapping[str, Mapping[str, FaultSpec]] = {
    group.__name__.rpartition(".")[2]: {spec.name: spec for spec in group.FAULTS}
    for group in (consumers, publishers, queues, nodes, cluster, clients, topology, probing)
}
"""Subject -> its faults by name."""

FAULTS: Mapping[str, FaultSpec] = {name: spec for group in FAULT_GROUPS.values() for name, spec in group.items()}
"""All faults by name."""
