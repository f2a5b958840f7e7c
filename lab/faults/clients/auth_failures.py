"""auth-failures: a client that retries with a wrong password."""

import pika

from ackscope.errors import BrokerError, Refused
from ackscope.findings import Subject
from lab.amqp import connect
from lab.faults.clients.again import PROOF
from lab.faults.fault import Fault, FaultSpec

_EVERY = 0.5


def inject(fault: Fault) -> None:
    """Log in with a wrong password, twice a second."""
    wrong = pika.PlainCredentials(fault.address.username, "not-the-password")
    for times, _ in enumerate(fault.ticks(_EVERY), start=1):
        try:
            connect(fault.address, "fault-auth-failures", credentials=wrong)
        except Refused:
            pass
        else:
            raise BrokerError("the broker accepted a wrong password")
        if times == PROOF:
            fault.announce()


SPEC = FaultSpec(
    name="auth-failures",
    rule="auth-failures",
    summary="a client logs in with a wrong password, twice a second",
    subject=Subject(kind="node", name=""),
    inject=inject,
    one_shot=False,
)
