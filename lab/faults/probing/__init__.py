"""Faults that only a client feels (H).

Not here: an unknown name, a long way and a slow machine of the probes, which are outside of the broker; and a node that
differs, which only probes see that know the address of each node.
"""

from lab.faults.fault import FaultSpec
from lab.faults.probing import probe_message_lost

FAULTS: tuple[FaultSpec, ...] = (probe_message_lost.SPEC,)
