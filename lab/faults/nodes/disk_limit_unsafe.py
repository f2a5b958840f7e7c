"""disk-limit-unsafe: a node with the smallest free disk limit, whose machine seems to have more memory than disk.

Source: https://www.rabbitmq.com/docs/production-checklist#resource-limits-disk-space
"""

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec
from lab.node import Extra


def inject(fault: Fault) -> None:
    """Announce it; the broker was started with these settings."""
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="disk-limit-unsafe",
    rule="disk-limit-unsafe",
    summary="the free disk limit is 10 MB, with less disk space than memory",
    subject=Subject(kind="cluster", name=""),
    inject=inject,
    # In bytes: 3.10 does not know TB, and would use the memory of the machine.
    extra=Extra(config="total_memory_available_override_value = 100000000000000\n"),
)
