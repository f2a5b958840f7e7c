"""removed-feature-used: a policy that sets lazy queues, which 4.0 accepts and ignores."""

from urllib.parse import quote

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec


def inject(fault: Fault) -> None:
    """Set the policy."""
    path = f"/api/policies/{quote(fault.address.vhost, safe='')}/fault-removed-feature-used"
    fault.later(lambda: fault.ask("DELETE", path))
    document = {"pattern": "^fault\\.", "definition": {"queue-mode": "lazy"}, "apply-to": "all", "priority": -1}
    fault.ask("PUT", path, document)
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="removed-feature-used",
    rule="removed-feature-used",
    summary="a policy with queue-mode lazy on a broker that no longer knows it",
    subject=Subject(kind="vhost", name=""),
    inject=inject,
    brokers=("4.0", "4.3"),
)
