"""management-overload: all workers of the management API are busy; AMQP still works.

In production, expensive requests keep these workers busy: lists of many objects, many dashboards.
"""

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec
from lab.faults.nodes.inside import run_inside

_BUSY = (
    "S = self(), B = fun G() -> case is_process_alive(S) of true -> timer:sleep(200), G(); false -> ok end end, "
    "[worker_pool:submit_async(management_worker_pool, B) || _ <- lists:seq(1, 64)]"
)


def inject(fault: Fault) -> None:
    """Give every worker a task that lasts until the end of the fault."""
    run_inside(fault, _BUSY)
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="management-overload",
    rule="management-overload",
    summary="the management API answers health checks and lists, but no request that needs data from the nodes",
    subject=Subject(kind="cluster", name=""),
    inject=inject,
    alone=True,
)
