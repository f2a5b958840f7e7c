"""connection-limit-reached: a virtual host with a limit of one connection refuses a second client."""

from dataclasses import replace

from ackscope.errors import BrokerError, Refused, Unreachable
from ackscope.findings import Subject
from lab.amqp import connect
from lab.faults.clients.again import PROOF
from lab.faults.clients.limited import limited_vhost
from lab.faults.fault import Fault, FaultSpec

VHOST = "fault.connection-limit-reached"
_EVERY = 1.0


def inject(fault: Fault) -> None:
    """Create such a virtual host, open a connection, and try to open another one once a second."""
    limited_vhost(fault, VHOST, "max-connections", 1)
    inside = replace(fault.address, vhost=VHOST)
    fault.connect("fault-connection-limit-reached", virtual_host=VHOST).channel()
    for times, _ in enumerate(fault.ticks(_EVERY), start=1):
        try:
            connect(inside, "fault-connection-limit-reached-2")
        except (Refused, Unreachable):
            pass
        else:
            raise BrokerError("the broker accepted a second connection")
        if times == PROOF:
            fault.announce()


SPEC = FaultSpec(
    name="connection-limit-reached",
    rule="connection-limit-reached",
    summary="a virtual host is limited to one connection, which is in use; a second client is refused once a second",
    subject=Subject(kind="vhost", name=VHOST, vhost=VHOST),
    inject=inject,
)
