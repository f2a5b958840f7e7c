"""memory-near-limit: the watermark is set a little above what the node uses."""

from lab.faults.fault import Fault, FaultSpec
from lab.faults.nodes.inside import NODE, node, until

_SHARE = 0.86
_SET = "set_vm_memory_high_watermark"


def inject(fault: Fault) -> None:
    """Lower it, and see that no alarm comes of it; at the end set it back to what it was."""
    limit = node(fault)["mem_limit"]
    fault.later(lambda: fault.lab.ctl(0, _SET, "absolute", str(limit)))
    fault.lab.ctl(0, _SET, "absolute", str(int(node(fault)["mem_used"] / _SHARE)))
    until(fault, lambda: node(fault)["mem_limit"] < limit, "the new limit")
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="memory-near-limit",
    rule="memory-near-limit",
    summary="the node constantly uses 86 % of its memory limit",
    subject=NODE,
    inject=inject,
    alone=True,
)
