"""pub-oversized-message: a publisher exceeds the broker's message size, and loses its channel at each publish (406).

Versions before 4.0 accept 128 MiB, which is too much for the memory of a small machine: they are left out.
Source: https://www.rabbitmq.com/docs/configure (max_message_size)
"""

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec
from lab.faults.publishers.closing_loop import publish_in_vain

MIB = 17


def inject(fault: Fault) -> None:
    """Publish 17 MiB; the limit is 16 MiB."""
    body = b"x" * (MIB << 20)
    publish_in_vain(fault, fault.connect("fault-pub-oversized-message"), "amq.fanout", body, rate=0.8)


SPEC = FaultSpec(
    name="pub-oversized-message",
    rule="pub-oversized-message",
    summary="a publisher sends 17 MiB with a limit of 16 MiB, loses its channel and retries",
    subject=Subject(kind="connection", name=""),
    inject=inject,
    apart=True,
    brokers=("4.0", "4.3"),
    # In two polls, `ackscope diagnose` sees too few cycles to identify the error, and reports channel-churn.
    one_shot=False,
)
