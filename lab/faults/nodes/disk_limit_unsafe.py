"""disk-limit-unsafe: a node with the smallest free disk limit that thinks its machine has more memory than disk.

Source: https://www.rabbitmq.com/docs/production-checklist#resource-limits-disk-space
"""

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec
from lab.node import Extra


def inject(fault: Fault) -> None:
    """Nothing is to do: the broker was started so."""
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="disk-limit-unsafe",
    rule="disk-limit-unsafe",
    summary="the free disk limit is 10 MB, with less disk space than memory",
    subject=Subject(kind="cluster", name=""),
    inject=inject,
    # In bytes: 3.10 knows no TB, and goes by the machine's memory then.
    extra=Extra(config="total_memory_available_override_value = 100000000000000\n"),
)
