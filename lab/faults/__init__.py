"""Faults that can be put into a broker on purpose, one a file; `FAULTS` is the table.

`python -m lab.faults NAME --amqp URL --management URL` injects one, prints a JSON line once it is in effect, and holds
it until SIGTERM or the end of its input; then it removes what it made.
"""

from collections.abc import Mapping

from lab.faults import pub_nacked_overflow, requeue_loop, stuck_consumer
from lab.faults.fault import FaultSpec

FAULTS: Mapping[str, FaultSpec] = {
    spec.name: spec for spec in (stuck_consumer.SPEC, requeue_loop.SPEC, pub_nacked_overflow.SPEC)
}
