"""disk-trending-full: a file on the broker's disk grows steadily towards a close limit.

Its blocks are allocated but not written, so the disk has no work.
"""

import os

from lab.faults.fault import Fault, FaultSpec
from lab.faults.nodes.inside import NODE, node

_ROOM = 2_000_000_000
_STEP = 10_000_000
_MOST = 1_800_000_000


def inject(fault: Fault) -> None:
    """Set the limit close to the free space, and grow the file by 10 MB a second; undo both at the end."""
    seen = node(fault)
    before, free = seen["disk_free_limit"], seen["disk_free"]
    fault.later(lambda: fault.lab.ctl(0, "set_disk_free_limit", str(before)))
    fault.lab.ctl(0, "set_disk_free_limit", str(free - _ROOM))
    path = fault.lab.folder / "fault.disk-trending-full"
    fault.later(lambda: path.unlink(missing_ok=True))
    with path.open("wb") as file:
        fault.announce()
        for number, _ in enumerate(fault.ticks(1.0)):
            if number * _STEP < _MOST:
                os.posix_fallocate(file.fileno(), number * _STEP, _STEP)


SPEC = FaultSpec(
    name="disk-trending-full",
    rule="disk-trending-full",
    summary="free disk space falls by 10 MB/s and will reach its limit within minutes",
    subject=NODE,
    inject=inject,
    alone=True,
    one_shot=False,
)
