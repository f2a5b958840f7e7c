"""disk-trending-full: a file on the broker's disk grows, evenly, towards a limit that is near.

Its blocks are reserved and not written, so that the disk has nothing to do.
"""

import os

from lab.faults.fault import Fault, FaultSpec
from lab.faults.nodes.inside import NODE, node

_ROOM = 2_000_000_000
_STEP = 10_000_000
_MOST = 1_800_000_000


def inject(fault: Fault) -> None:
    """Bring the limit near, and let the file grow by 10 MB a second; at the end both are as before."""
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
