"""queue-limit-reached: a virtual host has as many queues as it may have, and a client declares one more in a loop."""

from ackscope.findings import Subject
from lab.faults.clients.again import refused
from lab.faults.clients.limited import limited_vhost
from lab.faults.fault import Fault, FaultSpec

VHOST = "fault.queue-limit-reached"
_QUEUES = 6
_REFUSED = 406


def inject(fault: Fault) -> None:
    """Declare all queues that the limit allows, and then one more twice a second; the broker closes each channel."""
    limited_vhost(fault, VHOST, "max-queues", _QUEUES)
    channel = fault.connect("fault-queue-limit-reached-owner", virtual_host=VHOST).channel()
    for number in range(_QUEUES):
        channel.queue_declare(f"fault.reply.{number}", durable=True)
    refused(
        fault,
        "fault-queue-limit-reached",
        _REFUSED,
        lambda channel: channel.queue_declare("fault.reply.one-more", durable=True),
        every=0.5,
        virtual_host=VHOST,
    )


SPEC = FaultSpec(
    name="queue-limit-reached",
    rule="queue-limit-reached",
    summary="a virtual host has six queues of at most six, and a client is refused a seventh twice a second",
    subject=Subject(kind="vhost", name=VHOST, vhost=VHOST),
    inject=inject,
    apart=True,
)
