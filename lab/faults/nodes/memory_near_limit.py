"""memory-near-limit: the memory watermark is slightly above the memory that the node uses."""

from lab.faults.fault import Fault, FaultSpec
from lab.faults.nodes.inside import NODE, node, until

_SHARE = 0.86
_SET = "set_vm_memory_high_watermark"


def inject(fault: Fault) -> None:
    """Lower the watermark, without raising the alarm; restore it at the end."""
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
