"""quorum-queue-leaderless: two replicas are suspended and the leader is killed, so no leader can be elected.

All three processes exist, so no replica counts as missing. Before 4.1 the broker still reports the old leader and has
no health check for this, so clients of the API cannot detect it.
"""

from ackscope.errors import BrokerError
from ackscope.findings import Subject
from ackscope.log import get_logger
from lab.faults.cluster.nodes import has_replicas, until
from lab.faults.fault import Fault, FaultSpec

_log = get_logger(__name__)

QUEUE = "fault.quorum-queue-leaderless"
_PROCESS = f'whereis(list_to_atom("%2F_{QUEUE}"))'
_CHECK = "/api/health/checks/quorum-queues-without-elected-leaders/all-vhosts"


def inject(fault: Fault) -> None:
    """Suspend the two followers, then kill the leader on the node where the queue was declared."""
    fault.make_queue(QUEUE, {"x-queue-type": "quorum"})
    has_replicas(fault, QUEUE, 3)
    for index in (1, 2):
        fault.later(lambda index=index: fault.lab.ctl(index, "eval", f"sys:resume({_PROCESS})."))  # type: ignore[misc]  # mypy: lambda default
        fault.lab.ctl(index, "eval", f"sys:suspend({_PROCESS}).")
    fault.lab.ctl(0, "eval", f"exit({_PROCESS}, kill).")
    until(fault, "the broker's own check fails", lambda: _fails(fault))
    fault.announce()
    fault.hold()


def _fails(fault: Fault) -> bool:
    try:
        fault.ask("GET", _CHECK)
    except BrokerError as error:
        _log.debug("health check failed", error=str(error))
        return " 503 " in str(error)
    return False


SPEC = FaultSpec(
    name="quorum-queue-leaderless",
    rule="quorum-queue-leaderless",
    summary="two replicas of a quorum queue are suspended and its leader is killed, so no leader can be elected",
    subject=Subject(kind="cluster", name=""),
    inject=inject,
    brokers=("4.3",),
    nodes=3,
)
