"""metadata-minority: two of three nodes stop, so nothing can be declared.

Source: https://www.rabbitmq.com/docs/metadata-store/failure-recovery
"""

from ackscope.findings import Subject
from lab.faults.cluster.nodes import stop_apps
from lab.faults.fault import Fault, FaultSpec


def inject(fault: Fault) -> None:
    """Stop the brokers of the other two nodes."""
    stop_apps(fault, 1, 2)
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="metadata-minority",
    rule="metadata-minority",
    summary="two of three nodes stop: the metadata store (Khepri) has no majority, and declares hang",
    subject=Subject(kind="cluster", name=""),
    inject=inject,
    brokers=("4.3",),
    nodes=3,
    alone=True,
    also=("node-down", "quorum-queue-minority", "stream-replica-missing", "quorum-queue-under-replicated"),
)
