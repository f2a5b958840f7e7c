"""disk-alarm: the free disk limit is higher than the size of any disk.

Source: https://www.rabbitmq.com/docs/disk-alarms
"""

from lab.faults.fault import Fault, FaultSpec
from lab.faults.nodes.inside import NODE, fails, node, until


def inject(fault: Fault) -> None:
    """Raise the limit; restore it at the end."""
    before = node(fault)["disk_free_limit"]
    fault.later(lambda: fault.lab.ctl(0, "set_disk_free_limit", str(before)))
    fault.lab.ctl(0, "set_disk_free_limit", "9000GB")
    until(fault, lambda: fails(fault, "alarms"), "the disk alarm")
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="disk-alarm",
    rule="disk-alarm",
    summary="the free disk limit is above the free space: every publisher is blocked",
    subject=NODE,
    inject=inject,
    alone=True,
)
