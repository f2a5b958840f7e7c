"""A stream with retention by policy that is read by nobody now, and grows until its limit."""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import writer

_STREAM = "fault.decoy.stream-with-retention"
_BYTES, _EACH = 2_000, 5


def inject(fault: Fault) -> None:
    """Publish 50 messages of 2 kB a second to a stream that keeps 500 MB."""
    path = f"/api/policies/%2F/{_STREAM}"
    definition = {"max-length-bytes": 500_000_000}
    fault.later(lambda: fault.ask("DELETE", path))
    fault.ask("PUT", path, {"pattern": f"^{_STREAM}$", "definition": definition, "apply-to": "all"})
    fault.make_queue(_STREAM, {"x-queue-type": "stream"})
    channel = writer(fault, _STREAM)
    for number, _ in enumerate(fault.ticks(0.1)):
        publish(channel, _STREAM, _EACH, body=b"x" * _BYTES)
        if number == 20:
            fault.announce()


SPEC = FaultSpec(
    name="decoy.stream-with-retention",
    rule="",
    summary="a stream with retention by policy grows until its limit",
    subject=Subject(kind="queue", name=_STREAM),
    inject=inject,
)
