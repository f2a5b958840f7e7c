"""memory-alarm: the memory watermark is below the memory that the node uses.

Source: https://www.rabbitmq.com/docs/memory#threshold
"""

from lab.control import ALARM_WATERMARK
from lab.faults.fault import Fault, FaultSpec
from lab.faults.nodes.inside import NODE, fails, node, until

_SET = "set_vm_memory_high_watermark"


def inject(fault: Fault) -> None:
    """Lower the watermark; restore it at the end."""
    limit = node(fault)["mem_limit"]
    fault.later(lambda: fault.lab.ctl(0, _SET, "absolute", str(limit)))
    fault.lab.ctl(0, _SET, ALARM_WATERMARK)
    until(fault, lambda: fails(fault, "alarms"), "the memory alarm")
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="memory-alarm",
    rule="memory-alarm",
    summary="the memory watermark is far below the memory in use: every publisher is blocked",
    subject=NODE,
    inject=inject,
    alone=True,
)
