"""quorum-queue-without-dlx: a quorum queue with a consumer and a delivery limit, without a dead-letter exchange."""

from urllib.parse import quote

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.quorum-queue-limit"
"""Not named after its rule, because "dlx" in its name would make it look like a dead-letter queue."""


def inject(fault: Fault) -> None:
    """Declare the queue with a limit, because 3.10 has no default, and consume."""
    fault.make_queue(QUEUE, {"x-queue-type": "quorum", "x-delivery-limit": 5})
    consumer = fault.connect("fault-quorum-queue-without-dlx").channel()
    consumer.basic_qos(prefetch_count=10)
    consumer.basic_consume(QUEUE, lambda channel, method, *_: channel.basic_ack(method.delivery_tag))
    path, announced = f"/api/queues/{quote(fault.address.vhost, safe='')}/{QUEUE}", False
    for _ in fault.ticks(1.0):
        # The broker reports no consumers of a new quorum queue for about ten seconds.
        if not announced and fault.ask("GET", path).get("consumers"):
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="quorum-queue-without-dlx",
    rule="quorum-queue-without-dlx",
    summary="a quorum queue with a delivery limit and no dead-letter exchange",
    subject=Subject(kind="vhost", name=""),
    inject=inject,
)
