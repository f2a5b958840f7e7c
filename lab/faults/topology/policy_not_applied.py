"""policy-not-applied: two policies of the same priority match one queue, with different definitions."""

from functools import partial
from urllib.parse import quote

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.policy-not-applied"


def inject(fault: Fault) -> None:
    """Declare a queue, and two policies for it."""
    fault.make_queue(QUEUE)
    vhost = quote(fault.address.vhost, safe="")
    for number, definition in enumerate(({"max-length": 1000}, {"message-ttl": 60000}), start=1):
        path = f"/api/policies/{vhost}/fault-policy-not-applied-{number}"
        fault.later(partial(fault.ask, "DELETE", path))
        document = {"pattern": "^fault\\.policy-not-applied$", "definition": definition, "apply-to": "queues"}
        fault.ask("PUT", path, document)
    fault.announce()
    fault.hold()


SPEC = FaultSpec(
    name="policy-not-applied",
    rule="policy-not-applied",
    summary="two policies of the same priority match one queue: which one applies is undefined",
    subject=Subject(kind="vhost", name=""),
    inject=inject,
)
