"""Faults that only probes see (H).

Not included: an unresolved host name, a long round trip and a slow machine of the probes, which are outside the broker;
and a node that differs, which only probes with an address for each node can see.
"""

from lab.faults.fault import FaultSpec
from lab.faults.probing import probe_message_lost

FAULTS: tuple[FaultSpec, ...] = (probe_message_lost.SPEC,)
