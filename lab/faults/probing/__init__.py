"""Faults that only probes see (H).

Not included: faults outside the broker (an unresolved host name, a long round trip, a slow machine of the probes), and
a node that differs, which only probes with an address for each node can see.
"""

from lab.faults.fault import FaultSpec
from lab.faults.probing import probe_message_lost

FAULTS: tuple[FaultSpec, ...] = (probe_message_lost.SPEC,)
