"""Faults that can be put into a broker on purpose, one a file; `FAULTS` is the table, by what they are about.

`python -m lab.faults NAME --amqp URL --management URL [--lab FOLDER]` injects one, prints a JSON line once it is in
effect, and holds it until SIGTERM or the end of its input; then it removes what it made.
"""

from collections.abc import Mapping

from lab.faults import clients, cluster, consumers, nodes, probing, publishers, queues, topology
from lab.faults.fault import FaultSpec

FAULTS: Mapping[str, FaultSpec] = {
    spec.name: spec
    for group in (consumers, publishers, queues, nodes, cluster, clients, topology, probing)
    for spec in group.FAULTS
}
